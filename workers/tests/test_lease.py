# SPDX-License-Identifier: GPL-2.0-or-later
"""Leases: renewed while the work goes on, and the work stopped when they are lost, whatever it waits for."""

from __future__ import annotations

import logging
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection, connections
from django.utils import timezone

from lab.leases.process import worker_identity
from lab.models import Build, LateAnswer, Run
from lab.models.states import Outcome
from lab.runs.claim import Claim
from lab.runs.claiming import claim_build, is_held
from lab.runs.expired_claims import return_dead_claims
from lab.runs.hand_back import release
from lab.runs.record import BuildSuccess, RunRecord, record_build_success, record_run
from lab.runs.settle import cancel_experiment
from lab.tests.factories import ME, claim_run, finish_builds, make_build, make_grid
from workers import lease as leases
from workers.errors import ClaimLost
from workers.lease import Lease
from workers.tests.machines import await_true

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "LOOK_S", 0.05)
    monkeypatch.setattr(leases, "NOTICE_S", 0.1)


def claimed(lease_s: float = 1.0) -> Claim:
    claim = claim_build(make_build("x").pk, by=ME, lease_s=lease_s)
    assert claim is not None
    return claim


def beats(lease: Lease, happened: Callable[[], bool]) -> None:
    """Work until something has happened."""

    def look() -> bool:
        lease.beat()
        return happened()

    await_true(look, "what the work waits for")


def never() -> bool:
    return False


@contextmanager
def meanwhile(act: Callable[[], object], once: Callable[[], bool] = lambda: True) -> Iterator[None]:
    """Act in a thread, once something holds."""

    def run() -> None:
        try:
            await_true(once, "the moment to act")
            act()
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def ends_at(claim: Claim) -> datetime:
    end = Build.objects.get(pk=claim.id).lease_until
    assert end is not None
    return end


def test_a_lease_outlives_its_period_while_the_work_goes_on() -> None:
    claim = claimed(lease_s=3)
    with Lease(claim, 3) as lease:
        first = ends_at(claim)
        beats(lease, lambda: timezone.now() > first)
        assert return_dead_claims(alive=lambda _: True) == []
    assert release(claim)


def test_a_lease_is_renewed_for_work_that_is_busy_without_a_beat() -> None:
    claim = claimed(lease_s=3)
    with Lease(claim, 3):
        first = ends_at(claim)
        await_true(lambda: ends_at(claim) > first, "the lease was renewed")
        assert return_dead_claims(alive=lambda _: True) == []


def test_work_that_beats_notices_that_its_claim_was_cancelled() -> None:
    claim = claimed()
    with (
        meanwhile(lambda: Build.objects.update(state="cancelled", token="")),
        pytest.raises(ClaimLost, match="cancelled, or taken over"),
        Lease(claim) as lease,
    ):
        beats(lease, never)


def test_a_wait_that_makes_no_beat_is_interrupted() -> None:
    claim = claimed()
    with (
        meanwhile(lambda: Build.objects.update(state="cancelled", token="")),
        pytest.raises(ClaimLost),
        Lease(claim),
    ):
        time.sleep(60)


@pytest.mark.process
def test_a_program_that_the_work_waits_for_is_killed(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    claim = claimed()
    with (
        meanwhile(
            lambda: Build.objects.update(state="cancelled", token=""),
            once=lambda: mark.exists() and mark.read_text().strip() != "",
        ),
        pytest.raises(ClaimLost),
        Lease(claim),
    ):
        subprocess.run(["sh", "-c", f"echo $$ > {mark}; exec sleep 60"], check=True)
    assert not Path(f"/proc/{mark.read_text().strip()}").exists()


def test_work_in_a_loop_of_its_own_is_interrupted() -> None:
    claim = claimed()
    with (
        meanwhile(lambda: Build.objects.update(state="cancelled", token="")),
        pytest.raises(ClaimLost),
        Lease(claim),
    ):
        sum(iter(lambda: 1, 0))


def away(*_args: object, **_named: object) -> bool:
    raise OperationalError("the server closed the connection unexpectedly\n\tThis probably means")


def test_a_database_that_is_away_within_the_lease_loses_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    claim = claimed(lease_s=10)
    looks: list[int] = []

    def there(claim: Claim) -> bool:
        looks.append(claim.id)
        return is_held(claim)

    line = "waits to be renewed: the server closed the connection unexpectedly This"
    with Lease(claim, 10) as lease:
        monkeypatch.setattr(leases, "is_held", away)
        beats(lease, lambda: line in caplog.text)
        monkeypatch.setattr(leases, "is_held", there)
        beats(lease, lambda: bool(looks))
    assert release(claim)


def test_a_database_that_is_away_for_longer_ends_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    claim = claimed(lease_s=0.5)
    monkeypatch.setattr(leases, "is_held", away)
    monkeypatch.setattr(leases, "renew", away)
    with pytest.raises(ClaimLost, match=r"did not answer for 0\.5 s|confirmed it last"), Lease(claim, 0.5):
        time.sleep(60)


def test_work_that_is_stuck_gives_its_claim_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "SILENT_S", 0.3)
    claim = claimed()
    with pytest.raises(ClaimLost, match="no sign of life"), Lease(claim):
        time.sleep(60)


def test_an_answer_waits_for_a_database_that_comes_back(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = claimed(lease_s=5)
    tries = iter([away, away])

    def write() -> bool:
        next(tries, lambda: True)()
        return record_build_success(claim, BuildSuccess("k", "r", "h"))

    looks: list[int] = []

    def look(claim: Claim) -> bool:
        looks.append(claim.id)
        return is_held(claim)

    monkeypatch.setattr(leases, "is_held", look)
    with caplog.at_level(logging.WARNING), Lease(claim, 5) as lease:
        assert lease.record(write)
        # The record ended the claim: this is not a lost boot.
        looks.clear()
        await_true(lambda: bool(looks), "another look at the claim")
    assert caplog.text.count("waits to be recorded") == 2
    assert Build.objects.get().state == "built"
    assert not LateAnswer.objects.exists()


def test_an_answer_that_is_recorded_before_the_database_fails_is_not_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    experiment = make_grid(blocks=1)
    finish_builds(experiment)
    claim = claim_run(experiment.runs.order_by("position")[0].pk, by=ME)
    assert claim
    monkeypatch.setattr("lab.runs.record.settle", away)
    with Lease(claim) as lease:
        assert lease.record(lambda: record_run(claim, RunRecord(Outcome.FINISHED)))
    assert Run.objects.get(pk=claim.id).state == "done"
    assert not LateAnswer.objects.exists()


def test_an_answer_that_cannot_be_written_within_the_lease_is_not_kept_forever() -> None:
    claim = claimed(lease_s=0.5)
    with pytest.raises(OperationalError), Lease(claim, 0.5) as lease:
        lease.record(away)


def test_an_answer_after_the_claim_was_given_to_another_is_refused_and_seen(
    caplog: pytest.LogCaptureFixture,
) -> None:
    experiment = make_grid(blocks=1)
    finish_builds(experiment)
    run = experiment.runs.order_by("position")[0]
    first = claim_run(run.pk, by=ME)
    assert first
    Run.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    return_dead_claims(alive=lambda _: True)
    second = claim_run(run.pk, by="other:2:2")
    assert second
    assert not record_run(first, RunRecord(Outcome.FINISHED))
    late = LateAnswer.objects.get()
    assert (late.kind, late.work, late.said, late.why) == (
        "run",
        run.pk,
        "finished",
        "other:2:2 now has the claim",
    )
    assert (late.target, late.worker) == ("guest", worker_identity())
    assert "arrived too late and was discarded" in caplog.text
    assert record_run(second, RunRecord(Outcome.FINISHED))


def test_an_answer_to_a_cancelled_experiment_is_refused_and_seen() -> None:
    experiment = make_grid(blocks=1)
    finish_builds(experiment)
    claim = claim_run(experiment.runs.order_by("position")[0].pk, by=ME)
    assert claim
    cancel_experiment(experiment.pk)
    assert not record_run(claim, RunRecord(Outcome.PANICKED, blame="kernel", problem="Oops"))
    assert [(late.said, late.why) for late in LateAnswer.objects.all()] == [
        ("panicked: Oops", "it is cancelled now")
    ]


def test_late_answers_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lab.runs.record.KEPT", 3)
    claim = Claim("build", make_build("x").pk, "0" * 32)
    for number in range(5):
        assert not record_build_success(claim, BuildSuccess("k", f"r{number}", "h"))
    assert [late.said for late in LateAnswer.objects.all()] == ["built r4", "built r3", "built r2"]


def test_the_heartbeat_closes_its_own_connection_and_leaves_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []
    close_all = connections.close_all

    def noted(*args: Any) -> None:
        closed.append(threading.current_thread().name)
        close_all(*args)

    monkeypatch.setattr(connections, "close_all", noted)
    claim = claimed()
    with Lease(claim) as lease:
        lease.beat()
    assert closed == [f"lease of build {claim.id}"]
    # Servers that another test left may have threads of their own.
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("lease of")]
    assert Build.objects.exists()


def test_a_lease_in_a_thread_stops_its_work_at_a_beat() -> None:
    claim = claimed()
    messages: list[str] = []

    def work() -> None:
        try:
            with Lease(claim) as lease:
                beats(lease, never)
        except ClaimLost as exc:
            messages.append(str(exc))
        finally:
            connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    Build.objects.update(state="cancelled", token="")
    thread.join(20)
    assert messages
