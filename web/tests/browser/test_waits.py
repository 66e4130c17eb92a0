# SPDX-License-Identifier: GPL-2.0-or-later
"""Lock waits in a browser: chosen by kind, told as times, hostile names only ever text."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from lab.models import Experiment
from lab.tests.factories import make_twin
from lab.tests.wait_profiles import MS, add_waiting_boots
from web.tests.browser.conftest import HOSTILE, WIDTHS, Open
from web.tests.browser.pictures import faults, looked_at

BASE = {("sys", "walk", "down_read"): 40 * MS, ("sys", "walk", HOSTILE): 10 * MS, ("irq", "spin"): 2 * MS}
CANDIDATE = {("sys", "walk", "down_read"): 4 * MS, ("sys", "walk", HOSTILE): 10 * MS, ("irq", "spin"): 2 * MS}


@pytest.fixture
def waited(profiled: Experiment) -> str:
    """The address of the profile page of an experiment whose patch ends most of the waiting for one lock."""
    case = profiled.cases.get()
    add_waiting_boots(make_twin(profiled), case, BASE)
    for name, stacks in (("base", BASE), ("p", CANDIDATE)):
        add_waiting_boots(profiled.variants.get(name=name), case, stacks)
    return f"/experiments/{profiled.pk}/profile/{case.pk}/"


def test_the_kind_is_chosen_by_a_link_and_frames_are_told_as_times(visit: Open, waited: str) -> None:
    page = visit(f"{waited}?variant=p")
    page.click("text=Lock waits")
    expect(page.locator("#flame-head")).to_have_text("showgids (smoke): flame graph of lock waits of p")
    page.wait_for_selector("#flame[data-ready]")
    page.focus("#flame")
    page.keyboard.press("ArrowUp")
    expect(page.locator("#flame-detail")).to_contain_text("sys: 87.5")
    expect(page.locator("#flame-detail")).to_contain_text("44.1 ms")
    assert page.locator("text=Show idle").count() == 0


def test_a_difference_of_waits_compares_times_a_boot_until_shares_are_asked_for(
    visit: Open, waited: str
) -> None:
    page = visit(f"{waited}?kind=lock&variant=p&against=base")
    page.wait_for_selector("#flame[data-ready]")
    page.focus("#flame")
    for _ in range(4):
        page.keyboard.press("ArrowUp")
    expect(page.locator("#flame-detail")).to_contain_text(
        re.compile("down_read: base 42.ms, p 4.2.ms, ×.0.10, certain")
    )
    page.click("text=Time per boot")
    expect(page).to_have_url(re.compile("scale=shares"))
    again = visit(page.url[page.url.index("/experiments") :])
    again.wait_for_selector("#flame[data-ready]")
    expect(again.locator("button[data-flag=counts]")).to_have_attribute("aria-pressed", "false")


def test_a_lock_opens_into_its_callers_and_its_name_is_text(visit: Open, waited: str) -> None:
    page = visit(f"{waited}?kind=lock&variant=p")
    page.get_by_text("▸ walk").press("Enter")
    expect(page.locator("tr.near").first).to_contain_text("called by sys")
    expect(page.locator("tr.near", has_text=HOSTILE)).to_contain_text("calls")
    assert page.locator("main img").count() == 0


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_pages_of_waits_fit_and_axe_finds_nothing(visit: Open, waited: str, width: int, dark: bool) -> None:
    for name, asked in (("lock", "around=walk"), ("lock-difference", "against=base")):
        page = visit(f"{waited}?kind=lock&variant=p&{asked}", width=width, dark=dark)
        page.wait_for_selector("#flame[data-ready]")
        assert looked_at(page, name, width=width, dark=dark) <= width
        assert faults(page) == [], name
