# SPDX-License-Identifier: GPL-2.0-or-later
"""Counters side by side in a browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from lab.models import Experiment
from lab.tests.factories import make_run, make_twin
from lab.tests.wait_profiles import MS, add_waiting_boots
from web.tests.browser.conftest import HOSTILE, WIDTHS, Open
from web.tests.browser.pictures import faults, looked_at


@pytest.fixture
def counted(profiled: Experiment) -> str:
    """The address of the counters of an experiment whose patch halves one of 30; one name is hostile."""
    twin, case = make_twin(profiled), profiled.cases.get()
    for block in range(3):
        make_run(twin, case, purpose="profiled", block=block, state="done", outcome="finished")
    for place, run in enumerate(profiled.runs.filter(purpose="profiled")):
        noise = 1 + (7 * place % 11) / 1000
        factor = 0.5 if run.variant.name == "p" else 1.0
        run.counters = {
            "perf stat": {"context-switches": 48_211 * factor * noise, HOSTILE: 9_000_000 * noise},
            "vmstat": {f"counter_{number:02}": (number + 1) * 700 * noise for number in range(28)},
            "slab": {"dentry": 40 * (place % 3 - 1)},
        }
        run.unavailable = [{"what": f"perf stat: {HOSTILE}", "why": "the guest has no PMU"}]
        run.save()
    return f"/experiments/{profiled.pk}/counters/{case.pk}/"


def test_counters_are_reached_from_the_profiles_and_all_are_shown_when_asked(
    visit: Open, counted: str
) -> None:
    page = visit(counted.replace("counters", "profile"))
    page.get_by_role("link", name="Counters").press("Enter")
    rows = page.get_by_role("region", name="Counters", exact=True).locator("tbody tr")
    expect(rows).to_have_count(20)
    expect(rows.first).to_contain_text("context-switches")
    expect(rows.first).to_contain_text("▼ −49.9")
    expect(page.locator("main")).to_contain_text(HOSTILE)
    page.get_by_role("link", name="Show all 31 counters").press("Enter")
    expect(rows).to_have_count(31)
    assert page.locator("main img").count() == 0


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_counters_fit_and_axe_finds_nothing(visit: Open, counted: str, width: int, dark: bool) -> None:
    page = visit(counted, width=width, dark=dark)
    assert looked_at(page, "counters", width=width, dark=dark) <= width
    assert faults(page) == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_an_explanation_with_locks_and_counters_fits_and_axe_finds_nothing(
    visit: Open, profiled: Experiment, counted: str, width: int, dark: bool
) -> None:
    for variant in profiled.variants.all():
        waited = 4 if variant.name == "p" else 40
        add_waiting_boots(
            variant, profiled.cases.get(), {("walk", HOSTILE): waited * MS, ("irq", "spin"): MS}
        )
    address = f"/experiments/{profiled.pk}/explain/{profiled.comparisons.get().pk}/"
    page = visit(address, width=width, dark=dark)
    expect(page.get_by_role("region", name="Lock waits that changed")).to_contain_text(f"{HOSTILE}")
    expect(page.get_by_role("region", name="Counters that changed")).to_contain_text("context-switches")
    assert looked_at(page, "explain-locks", width=width, dark=dark) <= width
    assert faults(page) == []
