# SPDX-License-Identifier: GPL-2.0-or-later
"""From the front page to an old step that is triaged and bisected; the number of clicks is counted."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from lab.models import Bisection, Revision, StepDecision, Tree, User
from lab.tests.factories import make_experiment
from lab.trends.tests.test_trends import course
from web.tests.browser.conftest import HOSTILE, WIDTHS, Clicks, Open
from web.tests.browser.pictures import faults, looked_at

FIRST_BAD = 9
NEWEST = 24


@pytest.fixture
def old_step(transactional_db: None) -> str:
    """A step among three commits, with five measured revisions and a newer experiment since; its first bad commit."""
    course([100.0, 101.0, 100.0, 120.0, 121.0, 120.0, 121.0, 120.0, 121.0], step=3)
    tree = Tree.objects.get(name="tiny")
    for number in range(NEWEST + 1):
        subject = f"change {number} {HOSTILE if number == FIRST_BAD else ''}"
        Revision.objects.update_or_create(
            tree=tree,
            commit=f"{number:040x}",
            defaults={"position": number, "subject": subject, "author": "Ann <ann@example.org>"},
        )
    make_experiment(name="of this day", state="done")
    return f"{FIRST_BAD:040x}"


def test_an_old_step_is_triaged_and_bisected_within_three_clicks_of_the_front_page(
    visit: Open, old_step: str, alice: User
) -> None:
    tab = visit("/", by=alice)
    clicked = Clicks(tab)
    clicked.link("Trends")
    steps = tab.get_by_role("region", name="Steps")
    expect(steps.get_by_role("row").nth(1)).to_contain_text(f"change {FIRST_BAD}")
    clicked.button("Bisect the step of ns_per_open")
    said = tab.get_by_role("status").filter(has_text="searches 3 commits; the step is accepted")
    expect(said).to_be_visible()
    row, decision = Bisection.objects.get(), StepDecision.objects.get()
    assert (row.starter, row.state, row.line[-1]) == (alice, "running", old_step)
    assert (decision.author, decision.state, decision.commit) == (alice, "accepted", old_step)
    expect(tab.get_by_role("button", name="Bisect the step of")).to_have_count(0)
    clicked.link("Show its progress")
    expect(tab.get_by_text("3 of 3 commits left")).to_be_visible()
    assert clicked.count <= 3


def test_a_decision_is_undone_where_it_was_made(visit: Open, old_step: str, alice: User) -> None:
    tab = visit("/trends/", by=alice)
    tab.get_by_role("checkbox", name="Choose the step of ns_per_open").check()
    tab.get_by_label("Note on the chosen steps").fill("known")
    tab.get_by_role("button", name="Ignore").click()
    expect(tab.get_by_role("status").filter(has_text="1 step is ignored")).to_be_visible()
    tab.get_by_role("button", name="Open again").click()
    expect(tab.get_by_role("button", name="Bisect the step of")).to_have_count(1)
    assert StepDecision.objects.order_by("-pk")[0].state == "open"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_the_trends_with_steps_fit_and_axe_finds_nothing(
    visit: Open, old_step: str, alice: User, width: int, dark: bool
) -> None:
    tab = visit("/trends/", by=alice, width=width, dark=dark)
    assert looked_at(tab, "steps", width=width, dark=dark) <= width
    assert faults(tab) == []
