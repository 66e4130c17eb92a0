# SPDX-License-Identifier: GPL-2.0-or-later
import pytest

from lab.comparisons.compare import compare_experiment
from lab.comparisons.page import false_alarms
from lab.models import Comparison, Experiment, Run
from lab.models.states import Outcome
from lab.runs.record import SampleValue
from lab.runs.settle import cancel_experiment
from lab.tests.factories import (
    NS_PER_OPEN,
    finish_builds,
    finish_run,
    make_case,
    make_experiment,
    make_run,
    make_twin,
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
    measured([100, 200, 400, 800, 1600], [110.3, 219.5, 441, 879, 1763])
    comparison = the()
    assert (comparison.verdict, comparison.boots) == ("regression", 5)
    assert comparison.ratio == pytest.approx(1.1, rel=0.005)
    assert comparison.low == pytest.approx(1.1, rel=0.01)
    assert comparison.p_value == comparison.q_value
    assert (comparison.base_median, comparison.median) == (400, 441)
    assert (comparison.unit, comparison.better, comparison.margin) == ("ns", "lower", 0.02)
    assert "5 randomised blocks" in comparison.method


def test_a_boot_that_panicked_takes_only_its_own_pair_out() -> None:
    measured([100, 101, 100, 99, 100, 102], [90, None, 91, 90, 89, 90])
    assert (the().boots, the().verdict, the().partial) == (5, "improvement", True)


def test_one_block_is_inconclusive_with_the_number_needed() -> None:
    measured([100, None], [50, 50])
    comparison = the()
    assert (comparison.verdict, comparison.boots) == ("inconclusive", 1)
    assert comparison.reason.startswith("an interval needs 2 blocks, both sides share 1")
    assert comparison.ratio == pytest.approx(0.5)


def test_a_candidate_that_never_finished_says_so() -> None:
    measured([100, 100], [None, None])
    assert (the().verdict, the().boots, the().reason) == ("inconclusive", 0, "no valid boot of the candidate")


def test_a_boot_outside_its_gates_does_not_count() -> None:
    experiment = measured([100, 101, 99, 100], [100, 102, 100, 99])
    Run.objects.filter(variant__name="p", block=1).update(invalid=["the host's load was 30.0"])
    compare_experiment(experiment.pk)
    assert (the().boots, the().partial) == (3, True)


def three_arms(twin: list[float], candidate: list[float], **fields: object) -> Experiment:
    """Base, its twin and a candidate over as many blocks."""
    experiment = make_experiment(boots=len(twin), **fields)
    variants = [make_variant(experiment), make_variant(experiment, "p"), make_twin(experiment)]
    case = make_case(experiment)
    base = [100 + 0.7 * (-1) ** block for block in range(len(twin))]
    runs = [
        (make_run(variant, case, block=block), value)
        for variant, series in zip(variants, (base, candidate, twin), strict=True)
        for block, value in enumerate(series)
    ]
    finish_builds(experiment)
    for run, value in runs:
        finish_run(run, {"ns_per_open": [1e6, value, value]})
    return experiment


def test_the_base_is_compared_with_itself_and_its_record_is_kept() -> None:
    experiment = three_arms([100.3, 99.6, 100.9], [120.0, 119.2, 121.0])
    control = Comparison.objects.get(variant__role="a/a", metric="ns_per_open")
    assert control.verdict in {"unchanged", "inconclusive"}
    assert false_alarms(experiment.cases.get()) == {"ns_per_open": {"called": 0, "compared": 1}}
    assert Comparison.objects.get(variant__name="p", metric="ns_per_open").verdict == "regression"


def test_instructions_that_agree_are_compared_exactly_beyond_the_floor() -> None:
    experiment = make_experiment(boots=2, clock="instructions")
    variants = [make_variant(experiment), make_variant(experiment, "p"), make_twin(experiment)]
    case = make_case(experiment, metrics=[NS_PER_OPEN | {"margin": 0.002, "unit": "instructions"}])
    runs = [make_run(variant, case, block=block) for block in range(2) for variant in variants]
    finish_builds(experiment)
    for run in runs:
        count = 20_100.0 if run.variant.name == "p" else 20_000.0
        finish_run(run, {"ns_per_open": [1e6, count, count + 3]})
    comparison = Comparison.objects.get(variant__name="p")
    assert (comparison.verdict, comparison.notes) == ("regression", [])
    assert comparison.ratio == pytest.approx(1.005, rel=1e-4)
    assert Comparison.objects.get(variant__role="a/a").verdict == "unchanged"


def test_boots_that_should_agree_and_do_not_name_the_workload() -> None:
    three_arms([100.0, 100.0], [100.0, 100.0], clock="instructions")
    for row in Comparison.objects.filter(metric="ns_per_open"):
        assert row.notes[0].startswith("showgids is not deterministic here: ns_per_open, base: 2 boots lie")


def test_a_change_smaller_than_the_layout_placebos_is_not_called() -> None:
    experiment = make_experiment(boots=6)
    base, patched = make_variant(experiment), make_variant(experiment, "p")
    placebo = make_variant(experiment, name="layout-placebo", role="placebo")
    case = make_case(experiment)
    centre = {base.pk: 100.0, patched.pk: 103.0, placebo.pk: 106.0}
    runs = [make_run(v, case, block=block) for block in range(6) for v in (base, patched, placebo)]
    finish_builds(experiment)
    for run in runs:
        value = centre[run.variant_id] + 0.1 * ((run.block * 7 + run.variant_id) % 3)
        finish_run(run, {"ns_per_open": [1e6, value, value]})
    comparison = Comparison.objects.get(variant=patched)
    assert comparison.floor == pytest.approx(0.06, abs=0.003)
    assert comparison.verdict == "inconclusive"
    assert "layout" in comparison.reason


def test_an_experiment_that_was_cancelled_is_compared_as_far_as_it_went() -> None:
    experiment = make_experiment(boots=4)
    variants = [make_variant(experiment), make_variant(experiment, "p")]
    case = make_case(experiment)
    runs = [make_run(variant, case, block=block) for block in range(4) for variant in variants]
    finish_builds(experiment)
    for run in runs[:6]:
        value = (100.0 if run.variant == variants[0] else 150.0) + run.block
        finish_run(run, {"ns_per_open": [1e6, value, value]})
    cancel_experiment(experiment.pk)
    assert (the().verdict, the().partial, the().boots) == ("regression", True, 3)


def test_a_metric_that_is_zero_on_both_sides_is_unchanged() -> None:
    measured([0] * 5, [0] * 5, metric="user")
    assert (the("user").verdict, the("user").ratio) == ("unchanged", 1.0)


def test_a_metric_that_is_zero_on_one_side_has_no_ratio_and_is_judged_by_its_order() -> None:
    measured([0] * 5, [0.01] * 5, metric="user")
    comparison = the("user")
    assert (comparison.verdict, comparison.ratio, comparison.median) == ("regression", None, 0.01)
    assert comparison.reason == (
        "0 in 5 of 10 boots: there is no ratio; a boot is above the base's in 100% of pairs and below in 0%; "
        "the means differ by +0.01 s"
    )


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


def test_a_candidate_whose_boots_differ_more_is_noted_and_no_shift_is_called() -> None:
    experiment = make_experiment(boots=12)
    base = make_variant(experiment)
    twin, candidate = make_twin(experiment), make_variant(experiment, "p")
    case = make_case(experiment)
    series = {
        base: [100 + block % 3 for block in range(12)],
        twin: [100 + (block + 1) % 3 for block in range(12)],
        candidate: [101 + (-1) ** block * (20 + block) for block in range(12)],
    }
    runs = [
        (make_run(variant, case, block=block), value)
        for variant, values in series.items()
        for block, value in enumerate(values)
    ]
    finish_builds(experiment)
    for run, value in runs:
        finish_run(run, {"ns_per_open": [1e6, value, value]})
    comparison = Comparison.objects.get(variant=candidate)
    assert comparison.verdict == "inconclusive"
    (note,) = comparison.notes
    assert note.startswith("ns_per_open: boots of p differ ")
    assert " times as much as the base's (" in note
