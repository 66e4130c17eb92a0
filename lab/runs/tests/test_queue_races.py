# SPDX-License-Identifier: GPL-2.0-or-later
"""Many concurrent claims: every piece of work is claimed exactly once. On SQLite, and with KPERFLAB_TEST_DATABASE=postgres."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from lab.models import Build, Experiment, LateAnswer, Run, Sample, Target
from lab.models.states import Outcome
from lab.runs.claiming import claim_next_build, claim_next_run
from lab.runs.expired_claims import return_dead_claims
from lab.runs.record import BuildSuccess, RunRecord, record_build_success, record_run
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

THREADS = 8
# SQLite has one writer at a time: there the races are short, and the crowd waits.
PIECES = 200 if connection.vendor == "postgresql" else 40
QUEUE = "build.x86_64.gcc"


def side_by_side(work: Callable[[int], list[int]]) -> list[int]:
    """Run THREADS workers at once, each with a connection of its own; return their results."""

    def worker(number: int) -> list[int]:
        try:
            return work(number)
        finally:
            connection.close()

    with ThreadPoolExecutor(THREADS) as pool:
        return [piece for part in pool.map(worker, range(THREADS)) for piece in part]


def test_every_build_is_claimed_once() -> None:
    experiment = make_experiment()
    for number in range(PIECES):
        make_variant(experiment, *([f"p{number}"] if number else []))

    def work(number: int) -> list[int]:
        done, misses = [], 0
        while misses < 3:
            claim = claim_next_build(queue=QUEUE, by=f"host:{number}:0")
            if claim is None:
                misses += 1
                continue
            assert record_build_success(claim, BuildSuccess(f"k{claim.id}", "r", f"h{claim.id}"))
            done.append(claim.id)
        return done

    done = side_by_side(work)
    assert Counter(done) == Counter(Build.objects.values_list("pk", flat=True))
    assert set(Build.objects.values_list("state", "attempt")) == {("built", 1)}


def test_every_boot_is_claimed_once_and_one_at_a_time_on_each_target() -> None:
    blocks = PIECES // 4
    racks = [Target.objects.create(name=f"t{number}", group="rack") for number in range(4)]
    experiment = make_grid(blocks=blocks, switches=(("p",), ("q",), ("r",)))
    Experiment.objects.filter(pk=experiment.pk).update(group="rack", target=racks[0])
    finish_builds(experiment)
    record = RunRecord(Outcome.FINISHED, samples=samples({"ns_per_open": [1.0, 1.0]}))

    def work(number: int) -> list[int]:
        # Two are woken for each target, as by a message that came twice.
        done, misses = [], 0
        while misses < 10:
            claim = claim_next_run(target=racks[number % 4].name, by=f"host:{number}:0")
            if claim is None:
                misses += 1
                time.sleep(0.02)
                continue
            misses = 0
            assert record_run(claim, record)
            done.append(claim.id)
        return done

    done = side_by_side(work)
    # Both who are woken for a target may give up while the other one boots: what is left they take once more.
    while (more := side_by_side(work)) != []:
        done += more
    assert Counter(done) == Counter(Run.objects.values_list("pk", flat=True))
    assert set(Run.objects.values_list("state", "attempt")) == {("done", 1)}
    assert Sample.objects.count() == 2 * PIECES
    for block in range(blocks):
        assert Run.objects.filter(block=block).values("target").distinct().count() == 1
    assert Experiment.objects.get(pk=experiment.pk).state == "done"
    assert not LateAnswer.objects.exists()


def test_of_two_wake_ups_for_one_target_the_second_claims_nothing() -> None:
    experiment = make_grid(blocks=4)
    finish_builds(experiment)

    def work(number: int) -> list[int]:
        claim = claim_next_run(target="guest", by=f"host:{number}:0")
        return [claim.id] if claim else []

    assert len(side_by_side(work)) == 1
    assert Run.objects.filter(state="running").count() == 1


def test_work_that_is_taken_back_while_it_is_recorded_is_recorded_once() -> None:
    """A holder that was thought dead answers in the very moment in which it is taken back and claimed again."""
    experiment = make_experiment()
    variant, case = make_variant(experiment), make_case(experiment)
    for block in range(20):
        make_run(variant, case, block=block)
    finish_builds(experiment)
    record = RunRecord(Outcome.FINISHED, samples=samples({"ns_per_open": [1.0, 1.0]}))

    def work(number: int) -> list[int]:
        done: list[int] = []
        for _ in range(60):
            if number % 2:
                return_dead_claims(alive=lambda _: False)
                continue
            claim = claim_next_run(target="guest", by=f"host:{number}:0")
            if claim is not None and record_run(claim, record):
                done.append(claim.id)
        return done

    done = side_by_side(work)
    assert max(Counter(done).values(), default=0) <= 1
    recorded = Run.objects.filter(state="done")
    assert set(recorded.values_list("pk", flat=True)) == set(done)
    assert Sample.objects.count() == 2 * len(done)
    assert Run.objects.filter(state="running").count() <= 1
