# SPDX-License-Identifier: GPL-2.0-or-later
"""Changing an experiment on its page, in a browser: its priority, and that it is never deleted."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from lab.models import Experiment, User
from lab.tests.factories import make_grid
from web.tests.browser.conftest import WIDTHS, Open
from web.tests.browser.pictures import faults, looked_at


@pytest.fixture
def waiting(transactional_db: None) -> Experiment:
    """An open experiment of nobody in particular."""
    return make_grid()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_of_one_that_waits_fits_and_axe_finds_nothing(
    visit: Open, waiting: Experiment, charlie: User, width: int, dark: bool
) -> None:
    Experiment.objects.update(kept=dark)
    page = visit(f"/experiments/{waiting.pk}/", width=width, dark=dark, by=charlie)
    assert looked_at(page, "experiment-waiting", width=width, dark=dark) <= width
    assert faults(page) == []


def test_it_is_made_urgent_and_kept_while_the_page_renews_itself(
    visit: Open, waiting: Experiment, charlie: User
) -> None:
    page = visit(f"/experiments/{waiting.pk}/", by=charlie)
    page.get_by_label("Priority", exact=True).select_option("high")
    # The part above renews itself every two seconds: what was chosen outlives that.
    with page.expect_response(lambda answer: answer.url.endswith("/live")):
        pass
    page.get_by_role("button", name="Set priority").click()
    expect(page.get_by_role("status")).to_contain_text("Its priority is high now.")
    expect(page.get_by_label("Priority", exact=True)).to_have_value("high")
    page.get_by_role("button", name="Never delete").click()
    expect(page.get_by_role("status")).to_contain_text("The experiment is kept")
    expect(page.get_by_role("button", name="Allow deletion")).to_be_visible()
    waiting.refresh_from_db()
    assert (waiting.priority, waiting.kept) == (10, True)
