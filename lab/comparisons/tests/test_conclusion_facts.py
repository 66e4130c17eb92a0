# SPDX-License-Identifier: GPL-2.0-or-later
"""The facts of a conclusion, read from the tables."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import pytest

from kernels.mails.stored_diff import stored_diff
from lab.comparisons.conclusion.collect import conclusion_data, experiment_facts
from lab.comparisons.conclusion.locks import changes_locks
from lab.models import Comparison, Experiment, Run
from lab.models.states import Outcome, RunState
from lab.tests.factories import finish_builds, finish_run, make_case, make_grid, make_patch_switch, make_run

pytestmark = pytest.mark.django_db


def ended(**by_variant: str) -> Experiment:
    """Two boots of each variant: finished, or failed with this outcome."""
    made = make_grid([("p",)])
    for name, outcome in by_variant.items():
        state = "done" if outcome == "finished" else "failed"
        blame = "" if state == "done" else "kernel"
        made.runs.filter(variant__name=name).update(state=state, outcome=outcome, blame=blame)
    made.state = "done"
    made.save()
    return made


def test_a_base_that_never_booted_is_told_from_a_patch_that_did_not() -> None:
    headline = conclusion_data(ended(base="panicked", p="panicked"))["headline"]
    assert (
        headline == "No answer: the base kernel did not finish a boot, so there is nothing to compare with p."
    )
    headline = conclusion_data(ended(base="panicked", p="finished"))["headline"]
    assert (
        headline == "No answer: the base kernel did not finish a boot, so there is nothing to compare with p."
    )
    headline = conclusion_data(ended(base="finished", p="panicked"))["headline"]
    assert headline == "No answer: p was built, but did not finish a boot."


def booted(made: Experiment, values: Mapping[str, float | None]) -> Experiment:
    """The experiment after its boots: each variant with its value, or after a panic in each of its boots."""
    finish_builds(made)
    for run in made.runs.order_by("position"):
        value = values[run.variant.name]
        if value is not None:
            finish_run(run, {"ns_per_open": [value, value + run.block, value]})
        elif Run.objects.get(pk=run.pk).state == RunState.QUEUED:
            finish_run(run, outcome=Outcome.PANICKED, blame="kernel", problem="Oops")
    made.refresh_from_db()
    assert made.state == "done"
    return made


def test_a_patch_that_panics_beside_a_base_with_numbers_is_to_be_fixed_and_not_booted_more_often() -> None:
    conclusion = conclusion_data(booted(make_grid(blocks=3), {"base": 100.0, "p": None}))
    assert conclusion["headline"] == "No answer: p was built, but did not finish a boot."
    assert conclusion["next"]["action"] == "fix"


def test_a_workload_on_which_the_base_panics_is_no_difference_and_not_too_noisy() -> None:
    made = make_grid(blocks=3)
    case = make_case(made, workload="stat-walk")
    for block, variant in product(range(3), made.variants.all()):
        make_run(variant, case, block=block)
    finish_builds(made)
    for run in made.runs.order_by("position"):
        if run.case_id != case.pk or (run.variant.name == "p" and run.block == 0):
            finish_run(run, {"ns_per_open": [100.0, 100.0, 100.0]})
        elif Run.objects.get(pk=run.pk).state == RunState.QUEUED:
            finish_run(run, outcome=Outcome.PANICKED, blame="kernel", problem="Oops")
    made.refresh_from_db()
    conclusion = conclusion_data(made)
    assert conclusion["headline"] == "No answer for stat-walk; in showgids p is equal to the base within 2%."
    assert conclusion["next"]["action"] == "fix"
    assert "Choose a base" in conclusion["text"]


def test_a_base_one_of_whose_boots_finished_is_no_base_that_never_booted() -> None:
    made = ended(base="panicked", p="panicked")
    made.runs.filter(variant__name="base", block=0).update(state="done", outcome="finished")
    assert conclusion_data(made)["headline"] == "No answer: p was built, but did not finish a boot."


def test_a_lock_is_seen_in_a_patch_that_is_stored_as_a_mail() -> None:
    made = make_grid([("p",)])
    diff = f"--- a/x.c\n+++ b/x.c\n@@ -1,1 +1,2 @@\n a();\n+{'x' * 70}mutex_lock(&a); /* \udce9 */\n"
    make_patch_switch(made, "p", text=stored_diff(diff))
    assert changes_locks(made)


def test_boots_asked_for_are_the_experiments_or_those_compared_where_they_stop_early() -> None:
    made = make_grid([("p",)])
    made.boots = 7
    for metric, boots in (("ns", 3), ("calls", 5)):
        Comparison.objects.create(
            experiment=made,
            case=made.cases.get(),
            variant=made.variants.get(name="p"),
            metric=metric,
            primary=True,
            boots=boots,
            verdict="unchanged",
            margin=0.02,
        )
    assert experiment_facts(made).boots_asked == 7
    made.sequential = True
    assert experiment_facts(made).boots_asked == 5
