# SPDX-License-Identifier: GPL-2.0-or-later
from itertools import product

import pytest
from django.db import IntegrityError

from lab.models import Comparison, Experiment, Run
from lab.models.states import Outcome, Purpose, RunState
from lab.runs import rounds
from lab.runs.rounds import blocks_done, take_again
from lab.runs.settle import settle
from lab.statistics.sequential import LOOKS
from lab.tests.factories import (
    finish_builds,
    finish_run,
    make_case,
    make_experiment,
    make_run,
    make_twin,
    make_variant,
)

pytestmark = pytest.mark.django_db

BUSY = {"host": {"host_cpus": 2, "load_before": 1.0, "load_after": 30.0}}


def sequential(**fields: object) -> Experiment:
    """Two candidates, base and twin, queued for the first look, kernels built."""
    experiment = make_experiment(sequential=True, boots=LOOKS[-1], **fields)
    variants = [make_variant(experiment), make_variant(experiment, "p"), make_variant(experiment, "q")]
    variants.append(make_twin(experiment))
    case = make_case(experiment)
    for block in range(LOOKS[0]):
        for variant in variants:
            make_run(variant, case, block=block)
    finish_builds(experiment)
    return experiment


def boot_all(experiment: Experiment, values: dict[str, list[float]]) -> None:
    """Finish every queued boot; a variant's value is that of its block, the last one for later blocks."""
    for run in experiment.runs.filter(state="queued").select_related("variant"):
        series = values[run.variant.name]
        value = series[min(run.block, len(series) - 1)]
        finish_run(run, {"ns_per_open": [1.0, value, value]})


CLEAR = {
    "base": [100.0, 101.0, 99.5, 100.4],
    "base-again": [100.2, 100.7, 99.9, 100.1],
    "p": [150.0, 151.0, 149.5, 150.2],
}


def test_cells_that_are_undecided_get_the_next_looks_blocks_and_decided_ones_do_not() -> None:
    experiment = sequential()
    boot_all(experiment, CLEAR | {"q": [90.0, 115.0, 100.0, 104.0]})
    experiment.refresh_from_db()
    assert experiment.state == "running"
    added = experiment.runs.filter(state="queued")
    assert set(added.values_list("variant__name", flat=True)) == {"base", "base-again", "q"}
    assert set(added.values_list("block", flat=True)) == set(range(LOOKS[0], LOOKS[1]))
    assert Comparison.objects.get(variant__name="p", metric="ns_per_open").verdict == "regression"


def test_an_experiment_ends_once_all_its_cells_are_decided() -> None:
    experiment = sequential()
    boot_all(experiment, CLEAR | {"q": CLEAR["p"]})
    experiment.refresh_from_db()
    assert experiment.state == "done"
    assert blocks_done(experiment.pk) == LOOKS[0]


def test_an_experiment_that_cannot_be_decided_ends_after_the_last_look() -> None:
    experiment = sequential()
    wild = [60.0, 160.0, 75.0, 140.0, 90.0, 120.0, 66.0, 150.0, 100.0, 55.0, 170.0]
    for _ in LOOKS:
        boot_all(experiment, CLEAR | {"q": [wild[i % len(wild)] for i in range(LOOKS[-1])]})
    experiment.refresh_from_db()
    assert (experiment.state, blocks_done(experiment.pk)) == ("done", LOOKS[-1])
    assert Comparison.objects.get(variant__name="q", metric="ns_per_open").verdict == "inconclusive"


def test_kernels_that_panic_in_every_boot_get_no_further_blocks() -> None:
    experiment = sequential()
    baseless = make_case(experiment, workload="stat-walk")
    for block, variant in product(range(LOOKS[0]), experiment.variants.all()):
        make_run(variant, baseless, block=block)
    for run in experiment.runs.order_by("position"):
        if Run.objects.get(pk=run.pk).state != RunState.QUEUED:
            continue  # cancelled after two boots of a kernel failed
        if run.variant.name == "q" or (run.case_id == baseless.pk and run.variant.name != "p"):
            finish_run(run, outcome=Outcome.PANICKED, blame="kernel", problem="Oops")
        else:
            finish_run(run, {"ns_per_open": [1.0, *[CLEAR[run.variant.name][run.block]] * 2]})
    assert not experiment.runs.filter(state="queued").exists()
    assert blocks_done(experiment.pk) == LOOKS[0]


def test_settling_twice_adds_no_block_twice() -> None:
    experiment = sequential()
    boot_all(experiment, CLEAR | {"q": [90.0, 115.0, 100.0, 104.0]})
    before = experiment.runs.count()
    assert not settle(experiment.pk)
    assert experiment.runs.count() == before


def one_run() -> Run:
    experiment = make_experiment(boots=1)
    run = make_run(make_variant(experiment), make_case(experiment))
    finish_builds(experiment)
    return run


def test_a_boot_outside_its_gates_is_kept_and_taken_again() -> None:
    run = one_run()
    finish_run(run, {"ns_per_open": [1.0, 5.0]}, environment=BUSY)
    run.refresh_from_db()
    assert run.state == "done"
    assert run.invalid == ["the host's load was 30.0, at most 4 is allowed on its 2 CPUs"]
    assert run.samples.count() == 2
    again = Run.objects.exclude(pk=run.pk).get()
    assert (again.block, again.retake, again.state, again.purpose) == (0, 1, "queued", Purpose.MEASURED)


def test_a_place_that_is_never_quiet_is_given_up_after_two_retakes() -> None:
    run = one_run()
    for _ in range(3):
        finish_run(Run.objects.get(state="queued"), {"ns_per_open": [1.0, 5.0]}, environment=BUSY)
    assert Run.objects.count() == 3
    assert not Run.objects.filter(state="queued").exists()
    run.experiment.refresh_from_db()
    assert run.experiment.state == "done"


def test_retakes_end_with_the_experiments_budget() -> None:
    experiment = make_experiment()
    variant, case = make_variant(experiment), make_case(experiment)
    runs = [make_run(variant, case, block=block) for block in range(5)]
    assert [take_again(run) for run in runs] == [True, True, True, False, False]


def test_profiled_boots_outside_a_gate_are_flagged_and_not_taken_again() -> None:
    experiment = make_experiment()
    run = make_run(make_variant(experiment), make_case(experiment), purpose="profiled")
    finish_builds(experiment)
    finish_run(run, environment=BUSY)
    run.refresh_from_db()
    assert run.invalid
    assert Run.objects.count() == 1


def test_two_targets_that_repeat_boots_at_the_same_time_get_a_position_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, other = one_run(), None
    free = rounds._next_position

    def overtaken(experiment_id: int) -> int:
        """Return a position that the other target takes first."""
        nonlocal other
        position = free(experiment_id)
        if other is None:
            other = make_run(run.variant, run.case, block=1, retake=1, position=position)
        return position

    monkeypatch.setattr(rounds, "_next_position", overtaken)
    assert take_again(run)
    again = run.experiment.runs.get(block=run.block, retake=1)
    assert other is not None
    assert again.position == other.position + 1


def test_a_boot_is_not_repeated_twice_at_the_same_place() -> None:
    run = one_run()
    make_run(run.variant, run.case, block=run.block, retake=1, position=7)
    with pytest.raises(IntegrityError):
        take_again(run)
