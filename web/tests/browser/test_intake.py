# SPDX-License-Identifier: GPL-2.0-or-later
"""Paste what git prints, press Submit: no field is required after the paste, and what is wrong is said all at once."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page as Tab
from playwright.sync_api import expect

from lab.models import Experiment, Tree, User
from web.tests.browser.conftest import WIDTHS, Open
from web.tests.browser.pictures import faults
from web.tests.browser.test_service import (
    INODE,
    fake_home,
    fake_lab,
    lab,
    mails,
    patient,
    pretend_kernel,
)
from workers.tests.conftest import FakeLab

__all__ = ["fake_home", "fake_lab", "lab", "patient", "pretend_kernel"]
COUNT_CLICKS = "window.clicks = 0; addEventListener('click', () => sessionStorage.clicks = Number(sessionStorage.clicks || 0) + 1, true)"
PASTE = """([area, text]) => {
  const data = new DataTransfer();
  data.setData('text/plain', text);
  area.focus();
  document.execCommand('insertText', false, text);
}"""


@pytest.fixture
def form(visit: Open, lab: FakeLab, alice: User) -> Tab:
    """The form as its reader finds it, with every click on its pages counted."""
    Tree.objects.exclude(name="pretend").delete()
    tab = visit("/experiments/new", by=alice, refused=422)
    tab.context.add_init_script(COUNT_CLICKS)
    tab.reload()
    tab.get_by_label("Tree", exact=True).select_option("pretend")
    tab.get_by_label("Base", exact=True).fill(lab.kernel.base.commit)
    tab.evaluate("sessionStorage.clicks = 0")
    return tab


def paste(tab: Tab, text: str, place: int = 0) -> None:
    """Put a text into the field as the clipboard does: typed line ends and all."""
    area = tab.locator("textarea[name$=-text]").nth(place)
    area.evaluate("(area, text) => (" + PASTE + ")([area, text])", text)


def clicks(tab: Tab) -> int:
    return int(tab.evaluate("sessionStorage.clicks || 0"))


@pytest.mark.parametrize("crlf", [False, True])
def test_a_pasted_series_is_submitted_with_one_click_and_no_field_filled_in(
    form: Tab, lab: FakeLab, *, crlf: bool
) -> None:
    text = "".join(mails(lab))
    assert text.startswith("From ")
    paste(form, text.replace("\n", "\r\n") if crlf else text)
    form.get_by_role("button", name="Submit", exact=True).click()
    expect(form.get_by_role("heading", name="fs: do not warn", level=1)).to_be_visible()
    row = Experiment.objects.get()
    assert row.name == "fs: do not warn"
    assert [switch.name for switch in row.switches.all()] == ["fs-do-not-warn"]
    assert clicks(form) <= 3


def test_a_pasted_diff_is_submitted_with_one_click(form: Tab, lab: FakeLab) -> None:
    paste(form, lab.diff(INODE, "\tWARN_HERE();\n", ""))
    form.get_by_role("button", name="Submit", exact=True).click()
    expect(form.get_by_role("heading", name=f"changes {INODE}", level=1)).to_be_visible()
    assert clicks(form) <= 3


def test_every_fault_is_beside_its_field_at_once_and_what_was_typed_stays(form: Tab, lab: FakeLab) -> None:
    paste(form, lab.diff(INODE, "\tWARN_HERE();\n", ""))
    form.get_by_label("Name of the switch").first.fill("my patch")
    form.get_by_label("Requires").first.fill("other")
    form.get_by_label("Boots", exact=True).fill("many")
    form.get_by_label("Iterations", exact=True).fill("0")
    form.get_by_role("button", name="Submit", exact=True).click()
    beside = {
        "patch-0-name": "use letters, digits, dots, dashes and underscores, and begin with a letter or digit; "
        "did you mean “my-patch”?",
        "patch-0-requires": "there is no switch “other”",
        "boots": "“many” is not a whole number",
        "iterations": "must be at least 1, not 0",
    }
    for field, words in beside.items():
        expect(form.locator(f"[id='{field}-error']")).to_contain_text(
            re.compile(words.replace("“", '["“]').replace("”", '["”]').replace("?", r"\?"))
        )
    expect(form.get_by_role("alert").get_by_role("listitem")).to_have_count(len(beside))
    expect(form.get_by_label("Name of the switch").first).to_have_value("my patch")
    assert form.locator("textarea[name=patch-0-text]").input_value().strip()
    assert Experiment.objects.count() == 0


def test_two_patches_that_do_not_apply_are_reported_together(form: Tab, lab: FakeLab) -> None:
    good = lab.diff(INODE, "\tWARN_HERE();\n", "")
    for place, name in enumerate(("drivers/absent.c", "fs/absent.c")):
        form.locator("summary", has_text="Paste ").nth(0).evaluate("node => node.parentElement.open = true")
        form.locator(f"[name=patch-{place}-text]").evaluate(
            "(area, text) => { area.value = text }", good.replace(INODE, name)
        )
    form.get_by_role("button", name="Submit", exact=True).click()
    for place in (0, 1):
        expect(form.locator(f"[id='patch-{place}-text-error']")).to_contain_text("absent.c")


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
def test_the_form_with_faults_looks_right(
    visit: Open, lab: FakeLab, alice: User, width: int, *, dark: bool
) -> None:
    tab = visit("/experiments/new", by=alice, refused=422, width=width, dark=dark)
    tab.get_by_label("Name of the switch").first.fill("my patch")
    tab.get_by_label("Boots", exact=True).fill("many")
    tab.get_by_role("button", name="Submit", exact=True).click()
    expect(tab.get_by_role("alert")).to_be_visible()
    assert not faults(tab)
