# SPDX-License-Identifier: GPL-2.0-or-later
"""Several processes see the end of an experiment at once. On SQLite, and with KPERFLAB_TEST_DATABASE=postgres."""

from __future__ import annotations

from contextlib import suppress
from threading import Barrier, BrokenBarrierError, Event
from typing import Any

import pytest
from django.db import connection

from lab.comparisons.compare import Compared, compute_comparisons
from lab.models import Comparison, Experiment, Run
from lab.models.states import Outcome
from lab.runs.claiming import claim_next_build, claim_next_run
from lab.runs.record import Failure, RunRecord, record_build_failure, record_run
from lab.runs.rounds import blocks_done
from lab.runs.settle import cancel_experiment, settle
from lab.runs.tests.test_rounds import CLEAR, boot_all, sequential
from lab.statistics.sequential import LOOKS
from lab.tests.at_once import at_once, until_one_waits
from lab.tests.factories import (
    finish_builds,
    make_case,
    make_experiment,
    make_grid,
    make_run,
    make_variant,
    samples,
)

pytestmark = pytest.mark.django_db(transaction=True)

BUSY = {"host": {"host_cpus": 2, "load_before": 1.0, "load_after": 30.0}}
VALUES = samples({"ns_per_open": [1.0, 1.0]})


def test_of_two_that_see_the_last_boot_end_one_settles_and_neither_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    experiment = make_grid(blocks=2, switches=(("p",), ("q",)))
    finish_builds(experiment)
    while claim := claim_next_run(target="guest", by="host:0:0"):
        with monkeypatch.context() as patch:
            patch.setattr("lab.runs.record.settle", lambda _: False)
            assert record_run(claim, RunRecord(Outcome.FINISHED, samples=VALUES))
    both = Barrier(2)
    create = Comparison.objects.bulk_create

    def create_beside_the_other(rows: list[Comparison]) -> list[Comparison]:
        with suppress(BrokenBarrierError):
            both.wait(timeout=1.0)
        return create(rows)

    monkeypatch.setattr(Comparison.objects, "bulk_create", create_beside_the_other)
    assert sorted(at_once(*[lambda: settle(experiment.pk)] * 2)) == [False, True]
    assert Experiment.objects.get(pk=experiment.pk).state == "done"
    assert Comparison.objects.filter(experiment=experiment.pk).count() == 2


def test_a_boot_that_is_queued_again_between_two_looks_at_the_work_left_keeps_its_experiment_open() -> None:
    experiment = make_experiment(boots=1)
    run = make_run(make_variant(experiment), make_case(experiment))
    finish_builds(experiment)
    claim = claim_next_run(target="guest", by="host:0:0")
    assert claim is not None
    record = RunRecord(Outcome.FINISHED, samples=VALUES, environment=BUSY)
    recorded: list[bool] = []

    def then_record(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        answer = execute(sql, params, many, context)
        if "lab_run" in sql and not recorded:
            recorded.extend(at_once(lambda: record_run(claim, record)))
        return answer

    with connection.execute_wrapper(then_record):
        assert not settle(experiment.pk)
    assert recorded == [True]
    assert Run.objects.exclude(pk=run.pk).get().state == "queued"
    assert Experiment.objects.get(pk=experiment.pk).state == "running"


def test_what_was_compared_before_further_boots_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = sequential()
    boots = CLEAR | {"q": [90.0, 115.0, 100.0, 104.0]}

    def finish_unsettled() -> None:
        with monkeypatch.context() as patch:
            patch.setattr("lab.runs.record.settle", lambda _: False)
            boot_all(experiment, boots)

    def then_others_go_on(experiment_id: int) -> Compared:
        compared = compute_comparisons(experiment_id)
        monkeypatch.setattr("lab.runs.settle.compute_comparisons", compute_comparisons)
        assert not settle(experiment_id)
        finish_unsettled()
        return compared

    finish_unsettled()
    monkeypatch.setattr("lab.runs.settle.compute_comparisons", then_others_go_on)
    assert not settle(experiment.pk)
    assert blocks_done(experiment.pk) == LOOKS[1]
    settle(experiment.pk)
    assert Comparison.objects.get(variant__name="q", primary=True).boots == LOOKS[1]


@pytest.mark.parametrize("recorded_meanwhile", [False, True])
def test_a_cancelled_experiment_is_compared_before_it_is_locked_and_with_the_last_boot(
    monkeypatch: pytest.MonkeyPatch, recorded_meanwhile: bool
) -> None:
    experiment = make_grid(blocks=4)
    finish_builds(experiment)
    for _ in range(4):
        boot_once()
    locked: list[bool] = []

    def compute(experiment_id: int) -> Compared:
        compared = compute_comparisons(experiment_id)
        if recorded_meanwhile and not locked:
            boot_once()
            boot_once()
        locked.append(connection.in_atomic_block)
        return compared

    monkeypatch.setattr("lab.runs.settle.compute_comparisons", compute)
    assert cancel_experiment(experiment.pk)
    assert locked == ([False, True] if recorded_meanwhile else [False])
    comparison = Comparison.objects.get(experiment=experiment.pk)
    assert comparison.boots == Run.objects.filter(state="done").count() / 2
    assert not cancel_experiment(experiment.pk)
    assert len(locked) == 1 + recorded_meanwhile


def test_a_boot_that_counts_no_more_is_not_in_the_comparison_of_a_cancelled_experiment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    experiment = make_grid(blocks=4)
    finish_builds(experiment)
    for _ in range(4):
        boot_once()

    def then_moved(experiment_id: int) -> Compared:
        compared = compute_comparisons(experiment_id)
        Run.objects.filter(state="done", block=0).update(invalid=["its block moved"])
        monkeypatch.setattr("lab.runs.settle.compute_comparisons", compute_comparisons)
        return compared

    monkeypatch.setattr("lab.runs.settle.compute_comparisons", then_moved)
    assert cancel_experiment(experiment.pk)
    assert Comparison.objects.get(experiment=experiment.pk).boots == 1


def test_an_experiment_is_cancelled_while_a_build_of_it_is_recorded() -> None:
    experiment = make_grid(blocks=1)
    claim = claim_next_build(by="host:0:0")
    assert claim is not None
    held = Event()

    def record_slowly(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        answer = execute(sql, params, many, context)
        if sql.startswith('UPDATE "lab_build"') and not held.is_set():
            held.set()
            until_one_waits()
        return answer

    def record() -> bool:
        if connection.vendor == "postgresql":
            # So that the other one is ended.
            connection.cursor().execute("SET deadlock_timeout = '20s'")
        with connection.execute_wrapper(record_slowly):
            return record_build_failure(claim, Failure("kernel", "does not compile"))

    def cancel() -> bool:
        assert held.wait(5)
        return cancel_experiment(experiment.pk)

    recorded, cancelled = at_once(record, cancel)
    assert recorded
    # What is recorded first may have ended the experiment.
    assert Experiment.objects.get(pk=experiment.pk).state == ("cancelled" if cancelled else "failed")
    assert set(Run.objects.values_list("state", flat=True)) == {"cancelled"}


def boot_once() -> None:
    claim = claim_next_run(target="guest", by="host:0:0")
    assert claim is not None
    assert record_run(claim, RunRecord(Outcome.FINISHED, samples=VALUES))
