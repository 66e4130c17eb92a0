# SPDX-License-Identifier: GPL-2.0-or-later
"""Notes on a trend and the pages of bisections in a browser; people and subjects are hostile."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from lab.models import Bisection, Note, Tree, User
from lab.notes.changes import write_note
from lab.tests.factories import make_bisection, make_bisection_step, make_experiment
from lab.trends.page import measured_revision, trend_page
from web.tests.browser.conftest import HOSTILE, WIDTHS, Open
from web.tests.browser.pictures import faults, looked_at


def commit(number: int) -> str:
    return f"{number:010x}{number:030x}"


@pytest.fixture
def noted(trend: str, alice: User) -> str:
    """The address of a trend with a note at its third revision."""
    revision = measured_revision(trend_page(trend), commit(2))
    write_note(author=alice, text=f"new compiler {HOSTILE}", revision=revision, trend=trend)
    return f"/trends/{trend}/"


@pytest.fixture
def searched(trend: str) -> Bisection:
    """A search over the trend's step that found its commit."""
    made = make_bisection(Tree.objects.get(name="tiny"), [commit(number) for number in range(6)])
    shift = {"outcome": "bad", "verdict": "regression", "low": 1.15, "high": 1.25}
    make_bisection_step(made, 5, ratio=1.2, experiment=make_experiment(), **shift)
    make_bisection_step(made, 2, outcome="skipped", reason=f"does not build: {HOSTILE}")
    make_bisection_step(made, 3, outcome="good", verdict="unchanged", ratio=1.0, low=0.99, high=1.01)
    make_bisection_step(made, 4, ratio=1.19, **shift)
    Bisection.objects.filter(pk=made.pk).update(state="done", answer="commit", suspects=[commit(4)])
    return made


def test_a_note_is_told_with_its_revision(visit: Open, noted: str) -> None:
    page = visit(noted)
    page.wait_for_selector("#trend[data-ready='6']")
    page.focus("#trend")
    page.keyboard.press("Home")
    expect(page.locator("#trend-said")).not_to_contain_text("note of")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#trend-said")).to_contain_text(f"note of alice: new compiler {HOSTILE}")
    assert page.locator("main img").count() == 0


def test_arrows_stay_within_the_part_of_a_trend_that_is_shown(visit: Open, noted: str) -> None:
    page = visit(f"{noted}?from=0000000002&to=0000000004")
    page.wait_for_selector("#trend[data-ready='6']")
    page.focus("#trend")
    reached = []
    for key in ("Home", "ArrowLeft", "ArrowRight", "End", "ArrowRight", "ArrowLeft"):
        page.keyboard.press(key)
        reached.append((page.locator("#trend-said").text_content() or "")[9:10])
    assert "".join(reached) == "223443"


def test_a_submitter_adds_a_note_by_keys_and_removes_it(visit: Open, noted: str, alice: User) -> None:
    page = visit(noted, by=alice)
    page.get_by_text("Write a note on a revision").press("Enter")
    page.get_by_label("Revision", exact=True).fill("0000000004")
    page.get_by_label("Your note").fill("bigger cache")
    page.get_by_role("button", name="Add").press("Enter")
    expect(page.get_by_role("article", name="Note of alice on 0000000004")).to_contain_text("bigger cache")
    page.get_by_role("link", name="Edit or delete the note of alice on 0000000004").press("Enter")
    page.get_by_role("button", name="Delete this note").press("Enter")
    expect(page.locator("main")).not_to_contain_text("bigger cache")
    assert Note.objects.count() == 1


def test_a_step_leads_to_its_search_and_on_to_the_experiments(
    visit: Open, noted: str, searched: Bisection
) -> None:
    page = visit(noted)
    page.get_by_role("link", name=f"bisection {searched.pk}").press("Enter")
    expect(page.locator("main")).to_contain_text(f"change 4 {HOSTILE}")
    expect(page.get_by_role("region", name="Steps")).to_contain_text(f"does not build: {HOSTILE}")
    assert page.locator("main img").count() == 0
    page.get_by_role("region", name="Steps").get_by_role("link").first.press("Enter")
    expect(page.locator("h1")).to_contain_text("an experiment")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_these_pages_fit_and_axe_finds_nothing(
    visit: Open, noted: str, searched: Bisection, alice: User, width: int, dark: bool
) -> None:
    addresses = {"noted": noted, "bisections": "/bisections/", "bisection": f"/bisections/{searched.pk}/"}
    for name, address in addresses.items():
        page = visit(address, width=width, dark=dark, by=alice)
        if name == "noted":
            page.wait_for_selector("#trend[data-ready]")
        assert looked_at(page, name, width=width, dark=dark) <= width
        assert faults(page) == [], name
