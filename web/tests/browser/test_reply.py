# SPDX-License-Identifier: GPL-2.0-or-later
"""The reply in a browser: copied by one button, and within the page on a phone."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from lab.models import Experiment
from web.tests.browser.conftest import WIDTHS, Open

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_button_copies_the_whole_text(visit: Open, profiled: Experiment) -> None:
    page = visit(f"/experiments/{profiled.pk}/reply/")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy").click()
    expect(page.locator("p.hide[role=status]")).to_have_text("Copied.")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == page.locator("#reply").input_value()
    assert copied.startswith("Hi,\n")


def test_without_a_clipboard_the_text_is_selected(visit: Open, profiled: Experiment) -> None:
    page = visit(f"/experiments/{profiled.pk}/reply/")
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('no')); }")
    page.get_by_role("button", name="Copy").click()
    expect(page.locator("p.hide[role=status]")).to_contain_text("Selected")
    assert page.evaluate("document.activeElement.selectionEnd - document.activeElement.selectionStart") > 100


@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_is_no_wider_than_its_window(visit: Open, profiled: Experiment, width: int) -> None:
    page = visit(f"/experiments/{profiled.pk}/reply/", width=width)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
