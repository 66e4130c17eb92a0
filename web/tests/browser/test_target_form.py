# SPDX-License-Identifier: GPL-2.0-or-later
"""The form of a target in a browser: a choice hides pointless fields, errors appear beside their fields."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from lab.models import Target, User
from lab.targets.changes import TargetFields, add_target
from web.tests.browser.conftest import HOSTILE, WIDTHS, Open
from web.tests.browser.pictures import faults, looked_at

POWER = {"kind": "redfish", "address": "https://bmc-1.example", "user": "lab", "password_file": "/etc/bmc-1"}
CONSOLE = {"kind": "netconsole", "address": "10.20.0.101", "to": "10.20.0.1"}
ACCESS = {"mac": "52:54:00:12:34:56", "power": POWER, "console": CONSOLE, "kexec": True}
TUNING = {"governor": "performance", "turbo": False, "isolcpus": "2-63"}


@pytest.fixture
def box(transactional_db: None) -> Target:
    wanted = TargetFields("box-1", "metal", "rack", 64, 131072, access=ACCESS, tuning=TUNING)
    return add_target(by=None, wanted=wanted)


def shown(page: Page) -> set[str]:
    """The names of the inputs that can be seen."""
    names = "all => all.filter(one => one.checkVisibility()).map(one => one.name)"
    inputs = page.locator("form.narrow").locator("input, select, textarea").evaluate_all(names)
    return {name for name in inputs if name not in {"csrfmiddlewaretoken", "seen"}}


def test_only_the_fields_that_the_choices_leave_are_shown(visit: Open, charlie: User) -> None:
    page = visit("/targets/new", by=charlie)
    guest = shown(page)
    assert not {name for name in guest if name.startswith("access")}
    page.select_option("[name=driver]", "fake")
    assert shown(page) == guest | {"access"}
    page.select_option("[name=driver]", "metal")
    assert "access.power.verify" in shown(page)
    assert "access.console.sol.line" not in shown(page)
    page.select_option("[name='access.power.kind']", "ipmi")
    page.select_option("[name='access.console.kind']", "sol")
    assert "access.power.verify" not in shown(page)
    assert "access.console.sol.line" in shown(page)
    assert "access.console.netconsole.to" not in shown(page)


def test_an_operator_takes_a_machine_in_is_told_what_is_wrong_and_mends_it(
    visit: Open, charlie: User, transactional_db: None
) -> None:
    page = visit("/lab/", by=charlie, refused=422)
    page.get_by_role("link", name="Add a target").click()
    page.get_by_label("Name").fill("box-7")
    page.get_by_label("Driver").select_option("metal")
    page.get_by_label("Network card").fill("52:54:00:12:34:57")
    page.get_by_label("User").first.fill("lab")
    page.get_by_label("File of its password").first.fill("/etc/kperflab/bmc-7")
    page.locator("[name='access.power.address']").fill("bmc-7")
    page.get_by_role("button", name="Add").click()
    wrong = page.locator("[name='access.power.address']")
    expect(wrong).to_have_attribute("aria-invalid", "true")
    expect(wrong).to_have_accessible_description(re.compile("is not the address of a BMC"))
    wrong.fill("https://bmc-7")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("status")).to_contain_text("box-7 was added")
    expect(page.get_by_role("heading", name="Access")).to_be_visible()
    page.get_by_role("link", name="Change").click()
    page.get_by_label("Governor").fill("performance")
    page.get_by_role("button", name="Change").click()
    expect(page.get_by_role("status")).to_contain_text("box-7 was changed")
    assert Target.objects.get(name="box-7").tuning == {"governor": "performance"}


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_the_forms_fit_and_axe_finds_nothing(
    visit: Open, box: Target, charlie: User, width: int, dark: bool
) -> None:
    for name, address in (
        ("new", "/targets/new"),
        ("edit", "/targets/box-1/edit"),
        ("page", "/targets/box-1/"),
    ):
        page = visit(address, width=width, dark=dark, by=charlie, refused=422)
        assert looked_at(page, f"target-{name}", width=width, dark=dark) <= width
        assert faults(page) == [], name
        if name == "edit":
            page.locator("[name='access.console.netconsole.to']").fill(HOSTILE)
            page.get_by_role("button", name="Change").click()
            assert looked_at(page, "target-refused", width=width, dark=dark) <= width
            assert faults(page) == []
