# SPDX-License-Identifier: GPL-2.0-or-later
"""The comparison page answers within two screens; nothing on it is cut off, on a phone neither."""

from __future__ import annotations

import pytest

from lab.models import Experiment, Sample
from lab.models.states import Outcome, Role, RunState
from lab.tests.factories import make_case, make_comparison, make_experiment, make_run, make_variant
from web.tests.browser.conftest import WIDTHS, Open
from web.tests.browser.pictures import faults, looked_at

TWO_SCREENS = 1800
CPUS = (1, 2, 4, 8, 16, 32)
FUNCTIONS = (
    "down_read",
    "up_read",
    "mutex_lock",
    "_raw_spin_lock",
    "lockref_put_return",
    "kernfs_refresh_inode",
)


def _waits(cycles: int) -> dict[str, object]:
    chains = [
        {"chain": [name, "kernfs_iop_permission"], "cycles": cycles // (place + 1)}
        for place, name in enumerate(FUNCTIONS)
    ]
    lock = {"name": "kernfs_rwsem", "kind": "rwsem", "cycles": cycles, "callers": chains[:1]}
    return {
        "machine": "one-socket",
        "cpus": 32,
        "cycles": 1000,
        "waiting": cycles,
        "functions": chains,
        "locks": [lock],
        "lines": [],
    }


@pytest.fixture
def demo(transactional_db: None) -> Experiment:
    """An experiment shaped like the demo's: six numbers of CPUs, two patches and the base again."""
    experiment = make_experiment(name="kernfs iattr rwsem, contention", clock="contention", state="done")
    metrics = [
        {
            "name": f"cycles_per_open_{cpus}",
            "unit": "cycles",
            "better": "lower",
            "margin": 0.02,
            "primary": True,
        }
        for cpus in CPUS
    ]
    case, base = make_case(experiment, metrics=metrics), make_variant(experiment)
    patches = [make_variant(experiment, name) for name in ("iattr-global", "iattr-hashed")]
    again = make_variant(experiment, "base-again", role=Role.AA)
    for cpus in CPUS:
        for variant, ratio in ((patches[0], 0.55), (patches[1], 0.48), (again, 1.0)):
            verdict = "improvement" if variant is not again and cpus > 2 else "inconclusive"
            fields = {"unit": "cycles", "better": "lower", "verdict": verdict, "boots": 3, "boots_needed": 12}
            shift = {"ratio": ratio, "low": ratio - 0.02, "high": ratio + 0.02, "q_value": 0.0004}
            medians = {"base_median": 7000.0 * cpus, "median": 7000.0 * cpus * ratio, "primary": True}
            make_comparison(case, variant, metric=f"cycles_per_open_{cpus}", **fields, **shift, **medians)
            for name in (f"slowdown_{cpus}", f"waiting_{cpus}"):
                make_comparison(case, variant, metric=name, **fields, **shift, primary=False)
    for variant, level in ((base, 221_000), (patches[0], 121_000), (patches[1], 104_000), (again, 221_000)):
        for block in range(3):
            over = {
                "state": RunState.DONE,
                "outcome": Outcome.FINISHED,
                "extras": {"contention": _waits(900)},
            }
            run = make_run(variant, case, block=block, **over)
            for cpus in CPUS:
                Sample.objects.create(
                    run=run, metric=f"cycles_per_open_{cpus}", iteration=1, value=level + 900 * block
                )
    return experiment


def test_the_comparison_page_of_the_demo_fits_two_screens(visit: Open, demo: Experiment) -> None:
    page = visit(f"/experiments/{demo.pk}/comparison/")
    assert page.get_by_text("Every boot of cycles_per_open_32").is_visible()
    assert page.get_by_text("17 other metrics: ").is_visible()
    assert page.get_by_text("Show all 6 functions").is_visible()
    assert not page.get_by_text("slowdown_8", exact=True).first.is_visible()
    height = page.evaluate("document.documentElement.scrollHeight")
    assert height <= TWO_SCREENS, f"the page is {height} pixels high"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_axe_finds_nothing_and_nothing_of_a_verdict_is_cut_off(
    visit: Open, demo: Experiment, width: int, dark: bool
) -> None:
    page = visit(f"/experiments/{demo.pk}/comparison/", width=width, dark=dark)
    assert looked_at(page, "answers", width=width, dark=dark) <= width
    assert faults(page) == []
    cut = "(one) => one.scrollWidth > one.clientWidth + 1"
    for name in ("Metrics of", "Verdicts at a glance"):
        assert not page.get_by_role("region", name=name).first.evaluate(cut), f"{name} is cut off"
