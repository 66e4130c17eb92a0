# SPDX-License-Identifier: GPL-2.0-or-later
"""The comparison page of an experiment under the contention clock."""

from __future__ import annotations

from typing import Any

import pytest

from lab.models import Experiment
from lab.models.states import Outcome, RunState
from lab.tests.factories import make_case, make_comparison, make_experiment, make_run, make_variant
from web.tests.conftest import SCRIPT, Page


def _waits(cycles: int, name: str) -> dict[str, Any]:
    caller = {"chain": ["down_read", "kernfs_iop_permission"], "cycles": cycles}
    return {
        "machine": "one-socket",
        "cpus": 8,
        "cycles": 1000,
        "waiting": cycles,
        "functions": [caller, {"chain": ["up_read"], "cycles": 50}],
        "locks": [{"name": name, "kind": "rwsem", "cycles": 30, "callers": [caller]}],
        "lines": [{"name": "jiffies+0x0", "cycles": cycles, "false_sharing": True, "callers": []}],
    }


@pytest.fixture
def contended(db: None) -> Experiment:
    experiment = make_experiment(clock="contention")
    base, patch = make_variant(experiment), make_variant(experiment, "p")
    case = make_case(experiment)
    for cpus, before, after in ((1, 100.0, 90.0), (8, 400.0, 180.0)):
        make_comparison(
            case, patch, metric=f"cycles_per_open_{cpus}", unit="cycles", base_median=before, median=after
        )
    for variant, cycles in ((base, 700), (patch, 300)):
        make_run(
            variant,
            case,
            state=RunState.DONE,
            outcome=Outcome.FINISHED,
            extras={"contention": _waits(cycles, SCRIPT)},
        )
    return experiment


def test_a_curve_and_its_table_show_each_variant_against_the_base_on_one_cpu(
    page: Page, contended: Experiment
) -> None:
    text = page(f"/experiments/{contended.pk}/comparison/")
    assert "Cycles per open, by the number of CPUs" in text
    assert "<title>base, 8 CPUs: 4 times</title>" in text
    assert "<title>p, 8 CPUs: 1.8 times</title>" in text
    assert "<title>p, 1 CPUs: 0.9 times</title>" in text


def test_the_page_says_in_which_functions_cpus_wait_and_for_what(page: Page, contended: Experiment) -> None:
    text = page(f"/experiments/{contended.pk}/comparison/").replace("\xa0", " ")
    row = text[text.index(">down_read<") :]
    assert row.index("70.00 %") < row.index("30.00 %") < row.index("up_read")
    assert "false sharing" in text
    assert "rwsem lock" in text
    assert "down_read ← kernfs_iop_permission" in text
    assert SCRIPT not in text


def test_other_clocks_have_no_such_section(page: Page, compared: Experiment) -> None:
    assert "CPUs wait" not in page(f"/experiments/{compared.pk}/comparison/")


def test_other_metrics_are_folded_into_a_line_that_says_whether_one_changed(
    page: Page, contended: Experiment
) -> None:
    case, patch = contended.cases.get(), contended.variants.get(name="p")
    make_comparison(case, patch, metric="slowdown_8", unit="×", primary=False, verdict="regression")
    make_comparison(case, patch, metric="waiting_8", unit="%", primary=False, verdict="unchanged")
    text = page(f"/experiments/{contended.pk}/comparison/")
    folded = text[text.index("2 other metrics: 1 significant change<") :]
    assert "slowdown_8" in folded
    assert "slowdown_8" not in text[: text.index("2 other metrics")]
