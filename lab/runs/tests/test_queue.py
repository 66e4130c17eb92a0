# SPDX-License-Identifier: GPL-2.0-or-later
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from lab.leases.process import is_alive, worker_identity
from lab.models import Build, Run
from lab.models.states import Outcome
from lab.runs.claiming import claim_build, renew
from lab.runs.expired_claims import return_dead_claims
from lab.runs.hand_back import release
from lab.runs.order import next_build, next_run
from lab.runs.record import BuildSuccess, RunRecord, record_build_success, record_run
from lab.tests.factories import (
    ME,
    claim_run,
    claimed_build,
    claimed_run,
    finish_build,
    finish_builds,
    make_build,
    make_case,
    make_experiment,
    make_grid,
    make_run,
    make_variant,
)

pytestmark = pytest.mark.django_db


def test_builds_wait_in_the_order_of_experiments_and_variants() -> None:
    first, second = make_grid(), make_grid()
    order = []
    while (pk := next_build()) is not None:
        order.append(pk)
        claimed_build(Build.objects.get(pk=pk))
    expected = [v.build_id for experiment in (first, second) for v in experiment.variants.all()]
    assert order == expected


def test_an_experiments_own_order_holds_for_builds_it_shares() -> None:
    build_one, two = make_build("one"), make_build("two")
    first, second = make_experiment(), make_experiment()
    make_variant(first, build=build_one)
    make_variant(first, "p", build=two)
    make_variant(second, build=two)
    make_variant(second, "q", build=build_one)
    assert next_build(first.pk) == build_one.pk
    assert next_build(second.pk) == two.pk
    second.state = "cancelled"
    second.save()
    assert next_build(second.pk) is None


def test_no_boot_is_ready_while_its_experiment_still_builds() -> None:
    experiment = make_grid()
    base, patched = experiment.variants.all()
    assert base.build
    assert patched.build
    finish_build(base.build)
    assert next_run() is None
    finish_build(patched.build)
    assert next_run() == experiment.runs.order_by("position").values_list("pk", flat=True).first()


def test_a_boot_of_a_variant_that_failed_is_never_ready() -> None:
    experiment = make_experiment()
    base = make_variant(experiment)
    make_run(base, make_case(experiment))
    finish_builds(experiment)
    experiment.variants.update(state="failed")
    assert next_run() is None


def test_nothing_of_a_cancelled_experiment_is_handed_out() -> None:
    experiment = make_grid()
    experiment.state = "cancelled"
    experiment.save()
    assert next_build() is None
    assert next_run() is None


def test_the_first_claim_starts_the_experiment() -> None:
    experiment = make_grid()
    claim_build(next_build() or 0, by=ME)
    experiment.refresh_from_db()
    assert experiment.state == "running"
    assert experiment.started_at is not None


def test_work_is_claimed_once() -> None:
    build = make_build("x")
    assert claim_build(build.pk, by=ME) is not None
    assert claim_build(build.pk, by="other:2:2") is None
    build.refresh_from_db()
    assert (build.claimed_by, build.attempt, build.state) == (ME, 1, "building")


def test_one_target_boots_one_kernel_at_a_time() -> None:
    experiment = make_grid()
    finish_builds(experiment)
    first, second, *_ = experiment.runs.order_by("position")
    claim = claimed_run(first)
    assert claim_run(second.pk, by=ME) is None
    assert record_run(claim, RunRecord(outcome=Outcome.FINISHED))
    assert claim_run(second.pk, by=ME) is not None


@pytest.mark.django_db(transaction=True)
def test_of_many_threads_exactly_one_gets_each_piece_of_work() -> None:
    builds = [make_build(f"b{number}") for number in range(12)]

    def grab(worker: int) -> list[int]:
        try:
            claims = [claim_build(build.pk, by=f"host:{worker}:0") for build in builds]
        finally:
            connection.close()
        return [claim.id for claim in claims if claim]

    with ThreadPoolExecutor(8) as pool:
        taken = [pk for part in pool.map(grab, range(8)) for pk in part]
    assert sorted(taken) == [build.pk for build in builds]


@pytest.mark.django_db(transaction=True)
def test_of_many_threads_one_boots_on_a_target_at_any_time() -> None:
    experiment = make_grid(blocks=8)
    finish_builds(experiment)
    runs = list(experiment.runs.values_list("pk", flat=True))

    def grab(pk: int) -> bool:
        try:
            return claim_run(pk, by=ME) is not None
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(grab, runs)) == 1
    assert Run.objects.filter(state="running").count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_many_answers_to_one_claim_one_is_stored() -> None:
    build = make_build("x")
    claim = claimed_build(build)

    def answer(number: int) -> bool:
        try:
            return record_build_success(claim, BuildSuccess(f"key{number}", "r", "h"))
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(answer, range(8)))
    assert sum(answers) == 1
    build.refresh_from_db()
    assert build.artifact_key == f"key{answers.index(True)}"


def test_a_lease_is_renewed_while_it_is_held_only() -> None:
    build = make_build("x")
    claim = claimed_build(build)
    before = Build.objects.get(pk=build.pk).lease_until
    assert renew(claim, lease_s=500)
    after = Build.objects.get(pk=build.pk).lease_until
    assert before
    assert after
    assert after > before + timedelta(seconds=300)
    assert release(claim)
    assert not renew(claim)
    assert not release(claim)
    assert Build.objects.get(pk=build.pk).state == "queued"


def test_an_expired_lease_is_taken_back_though_its_process_lives() -> None:
    build = make_build("x")
    claimed_build(build)
    Build.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    (returned,) = return_dead_claims(alive=lambda _: True)
    assert (returned.kind, returned.id, returned.given_up) == ("build", build.pk, False)


def test_work_of_a_dead_process_is_taken_back_before_its_lease_ends() -> None:
    experiment = make_grid()
    finish_builds(experiment)
    run = experiment.runs.order_by("position")[0]
    claim = claimed_run(run)
    assert return_dead_claims(alive=lambda _: True) == []
    (returned,) = return_dead_claims(alive=lambda identity: identity != ME)
    assert (returned.kind, returned.id, returned.claimed_by) == ("run", run.pk, ME)
    assert next_run() == run.pk
    assert not record_run(claim, RunRecord(outcome=Outcome.FINISHED))


def test_a_run_that_kills_its_worker_each_time_is_given_up() -> None:
    experiment = make_grid(blocks=1)
    finish_builds(experiment)
    run = experiment.runs.order_by("position")[0]
    given_up = []
    for _ in range(3):
        claimed_run(run)
        given_up += [returned.given_up for returned in return_dead_claims(alive=lambda _: False)]
    assert given_up == [False, False, True]
    run.refresh_from_db()
    assert (run.state, run.outcome, run.blame) == ("failed", "lost", "lab")
    assert "died 3 times" in run.problem


def test_work_given_back_by_hand_does_not_count_as_an_attempt() -> None:
    build = make_build("x")
    for _ in range(5):
        assert release(claimed_build(build))
    claimed_build(build)
    (returned,) = return_dead_claims(alive=lambda _: False)
    assert not returned.given_up


@pytest.mark.process
def test_this_process_is_alive_and_one_that_ended_is_not() -> None:
    assert is_alive(worker_identity())
    code = "from lab.leases.process import worker_identity; print(worker_identity())"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not is_alive(ended.stdout.strip())


def test_a_later_process_of_the_same_number_is_not_mistaken() -> None:
    host, pid, started = worker_identity().rsplit(":", 2)
    assert pid == str(os.getpid())
    assert not is_alive(f"{host}:{pid}:{int(started) - 1}")


@pytest.mark.parametrize("identity", ["", "nonsense", "a:b", f"{os.uname().nodename}:x:y"])
def test_an_identity_nobody_wrote_does_not_crash(identity: str) -> None:
    assert is_alive(identity) in {True, False}


def test_another_hosts_process_is_judged_by_its_lease() -> None:
    assert is_alive("some-other-host:1:1")
