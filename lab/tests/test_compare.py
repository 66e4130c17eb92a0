# SPDX-License-Identifier: GPL-2.0-or-later
import pytest

from lab.compare import compare_experiment
from lab.models import Comparison, Experiment, Run
from lab.record import SampleValue
from lab.states import Outcome
from lab.tests.factories import (
    finish_builds,
    finish_run,
    make_case,
    make_experiment,
    make_run,
    make_variant,
)

pytestmark = pytest.mark.django_db

Blocks = list[float | None]


def measured(base: Blocks, candidate: Blocks, metric: str = "ns_per_open") -> Experiment:
    """An experiment whose boots all ran; None stands for a boot that panicked."""
    experiment = make_experiment(boots=len(base))
    variants = [make_variant(experiment), make_variant(experiment, "p")]
    case = make_case(experiment)
    runs = [
        (make_run(variant, case, block=block), value)
        for variant, series in zip(variants, (base, candidate), strict=True)
        for block, value in enumerate(series)
    ]
    finish_builds(experiment)
    for run, value in runs:
        if value is None:
            finish_run(run, outcome=Outcome.PANICKED, blame="kernel", problem="Oops")
        else:
            # Warm-up and one wild iteration, neither of which may count.
            finish_run(run, {metric: [1e6, value, value, 1e6, value]})
    return experiment


def the(metric: str = "ns_per_open") -> Comparison:
    return Comparison.objects.get(metric=metric)


def test_boots_are_paired_within_their_block() -> None:
    measured([100, 200, 400, 800, 1600], [110, 220, 440, 880, 1760])
    found = the()
    assert (found.verdict, found.boots) == ("regression", 5)
    assert found.ratio == pytest.approx(1.1)
    assert found.low == pytest.approx(1.1)
    assert (found.base_median, found.median) == (400, 440)
    assert (found.unit, found.better, found.margin) == ("ns", "lower", 0.02)
    assert "bootstrap" in found.method


def test_a_boot_that_panicked_takes_only_its_own_pair_out() -> None:
    measured([100, 100, 100, 100, 100, 100], [90, None, 90, 90, 90, 90])
    assert (the().boots, the().verdict) == (5, "improvement")


def test_too_few_paired_boots_are_inconclusive_with_the_number_needed() -> None:
    measured([100, 100, None, 100, 100], [50, 50, 50, 50, 50])
    found = the()
    assert (found.verdict, found.boots, found.boots_needed) == ("inconclusive", 4, 5)
    assert found.reason == "a verdict takes 5 boots, 4 count"
    assert found.ratio == pytest.approx(0.5)


def test_a_candidate_that_never_finished_has_no_comparison() -> None:
    measured([100, 100], [None, None])
    assert not Comparison.objects.exists()


def test_a_metric_that_is_zero_on_both_sides_is_unchanged() -> None:
    measured([0] * 5, [0] * 5, metric="user")
    assert (the("user").verdict, the("user").ratio) == ("unchanged", 1.0)


def test_a_metric_that_is_zero_on_one_side_has_medians_but_no_ratio() -> None:
    measured([0] * 5, [0.01] * 5, metric="user")
    found = the("user")
    assert (found.verdict, found.ratio, found.median) == ("inconclusive", None, 0.01)
    assert "no ratio" in found.reason


def test_comparing_again_changes_nothing() -> None:
    experiment = measured([100, 101, 99, 100, 102], [100, 103, 98, 99, 101])
    fields = ("metric", "verdict", "ratio", "low", "high", "boots_needed", "reason")
    before = list(Comparison.objects.values_list(*fields))
    assert compare_experiment(experiment.pk) == 1
    assert list(Comparison.objects.values_list(*fields)) == before


def test_profiled_runs_are_never_timed() -> None:
    experiment = measured([100] * 5, [100] * 5)
    run = make_run(experiment.variants.get(name="p"), experiment.cases.get(), purpose="profiled")
    Run.objects.filter(pk=run.pk).update(state="done", outcome="finished")
    run.samples.create(metric="ns_per_open", iteration=1, value=1e9)
    compare_experiment(experiment.pk)
    assert the().verdict == "unchanged"


def test_samples_of_a_metric_the_workload_does_not_name_are_kept_but_not_compared() -> None:
    experiment = make_experiment()
    base, patched = make_variant(experiment), make_variant(experiment, "p")
    case = make_case(experiment)
    runs = [make_run(base, case), make_run(patched, case)]
    finish_builds(experiment)
    for run in runs:
        finish_run(run, samples=(SampleValue("secret", 0, False, 1.0),))
    assert not Comparison.objects.exists()
    assert runs[0].samples.count() == 1
