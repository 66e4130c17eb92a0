# SPDX-License-Identifier: GPL-2.0-or-later
"""Health checks: when they are due, what they boot, what they leave, and that boots and checks keep off each other."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core import mail
from django.test import Client
from django.utils import timezone

from lab.errors import FieldRefused, NotAllowed, StoreUnreachable
from lab.models import Build, Experiment, HealthCheck, Run, Target, User
from lab.runs.claiming import claim_next_run
from lab.runs.queue_list import queue_lines
from lab.runs.queues import queues_to_wake
from lab.storage.artifacts import artifacts_of
from lab.targets.fleet import read_fleet
from lab.targets.health_checks import Checked, ask_check, claim_check, due_checks, known_kernel, record_check
from lab.targets.quarantine import release_target
from lab.tests.factories import make_build, make_user, quarantine_target
from lab.tests.made import make_artifact
from workers import local, loop, tasks, upkeep, wakeups, work
from workers.drivers.base import BootRequest
from workers.drivers.fake import Script
from workers.errors import GuestPanicked
from workers.health import check_target
from workers.run import Bench
from workers.tests.conftest import FakeLab, opens

pytestmark = [pytest.mark.django_db, pytest.mark.process]


@pytest.fixture
def known(fake_lab: FakeLab, monkeypatch: pytest.MonkeyPatch) -> FakeLab:
    """A lab in which an experiment went well on the target."""
    monkeypatch.setattr(
        "workers.health.make_bench", lambda home: Bench(fake_lab.home, {"libvirt": fake_lab.driver})
    )
    monkeypatch.setattr("workers.health.choose_accelerator", lambda home, kernel, trusted: "tcg")
    fake_lab.run(fake_lab.spec({}, measure={"boots": 2, "iterations": 2, "warmup": 1}))
    return fake_lab


def guest() -> Target:
    return Target.objects.get(name="guest")


def test_a_check_boots_the_base_that_went_well_and_keeps_its_figure(known: FakeLab) -> None:
    known.scripts[""] = lambda request: opens(800.0, 6)
    boots = len(known.driver.requests)
    row = check_target("guest", force=True)
    assert row is not None
    assert (row.ok, row.problem, row.metric) == (True, "", "showgids ns_per_open")
    assert row.value == pytest.approx(800, rel=0.02)
    assert row.environment["artifact_key"] == known_kernel(guest())
    assert row.environment["guest"]["release"]
    assert len(known.driver.requests) == boots + 1
    # Its figure is compared with those of months, so it goes the way that is always there.
    assert known.driver.requests[-1].way == "power"
    assert guest().checked_until is None
    assert list((known.home / "checks").iterdir()) == []


def test_the_files_of_a_check_whose_worker_was_killed_go_with_the_next_check(known: FakeLab) -> None:
    """Its initrd has some 13 MB, or as much as a disk."""
    known.scripts[""] = lambda request: opens(800.0, 6)
    left = known.home / "checks" / "tmp0a1b2c3d"
    left.mkdir(parents=True)
    (left / ".lock").write_text("held\n")
    (left / "initrd").write_bytes(b"initrd")
    assert check_target("guest", force=True) is not None
    assert not left.exists()


def test_a_check_that_fails_counts_as_a_fault_and_three_of_them_are_a_quarantine(known: FakeLab) -> None:
    known.scripts[""] = lambda request: Script(problem=GuestPanicked("Oops: 0002"))
    for faults in (1, 2, 3):
        row = check_target("guest", force=True)
        assert row is not None
        assert (row.ok, row.problem, row.value) == (False, "Oops: 0002", None)
        assert guest().faults == faults
    assert guest().quarantined_at is not None
    assert "health check: Oops: 0002" in guest().quarantine_reason


def test_the_kernel_that_is_named_for_checks_is_checked_with_however_old_it_is(
    known: FakeLab, settings: Any
) -> None:
    known.scripts[""] = lambda request: opens(800.0, 6)
    settings.CHECK_KERNEL = known_kernel(guest())
    Experiment.objects.update(finished_at=timezone.now() - timedelta(days=settings.KEEP_DAYS + 1))
    Build.objects.update(finished_at=timezone.now() - timedelta(days=settings.KEEP_DAYS + 1))
    tasks.expire_files()
    row = check_target("guest", force=True)
    assert row is not None
    assert (row.ok, row.problem) == (True, "")
    assert guest().faults == 0


@pytest.mark.parametrize("ends", [SystemExit, KeyboardInterrupt])
def test_a_check_that_is_stopped_is_no_fault_of_the_target_and_stays_due(
    known: FakeLab, ends: type[BaseException]
) -> None:
    """As when a worker is restarted to bring its code up to date."""

    def stopped(request: BootRequest) -> Script:
        raise ends

    known.scripts[""] = stopped
    ask_check(by=None, target_id=guest().pk)
    with pytest.raises(ends):
        loop.take_one(work.EVERYTHING)
    assert not HealthCheck.objects.exists()
    assert (guest().faults, guest().checked_until) == (0, None)
    known.scripts[""] = lambda request: opens(800.0, 6)
    assert loop.take_one(work.EVERYTHING)
    assert HealthCheck.objects.get().ok


def test_a_machine_that_is_not_tuned_as_declared_is_not_well(known: FakeLab) -> None:
    Target.objects.update(tuning={"governor": "performance"})
    known.scripts[""] = lambda request: opens(800.0, 6)
    row = check_target("guest", force=True)
    assert row is not None
    assert not row.ok
    assert "governor: asked performance" in row.problem


def test_checks_are_due_once_a_day_on_targets_that_may_boot(known: FakeLab, settings: Any) -> None:
    assert due_checks() == []
    Target.objects.update(unchecked_since=timezone.now() - timedelta(hours=25))
    assert due_checks() == ["guest"]
    settings.CHECK_HOURS = 48
    assert due_checks() == []
    settings.CHECK_HOURS = 0
    assert due_checks(timezone.now() + timedelta(days=99)) == []
    settings.CHECK_HOURS = 24
    for fields in ({"enabled": False}, {"quarantined_at": timezone.now()}):
        Target.objects.update(**fields)
        assert due_checks() == []
        Target.objects.update(enabled=True, quarantined_at=None)
    Run.objects.filter(pk=Run.objects.values("pk")[:1]).update(state="running", target=guest())
    assert due_checks() == []


def test_an_operator_asks_for_one_and_the_worker_that_has_nothing_to_do_carries_it_out(
    known: FakeLab,
) -> None:
    known.scripts[""] = lambda request: opens(800.0, 6)
    with pytest.raises(NotAllowed):
        ask_check(by=make_user("alice"), target_id=guest().pk)
    ask_check(by=None, target_id=guest().pk)
    (queue,) = queue_lines((), read_fleet())
    assert (queue.name, queue.waiting, queue.running) == ("target.guest", 1, 0)
    assert loop.take_one(work.EVERYTHING)
    assert not loop.take_one(work.EVERYTHING)
    assert HealthCheck.objects.count() == 1
    assert guest().check_asked_at is None


def test_a_fleets_worker_checks_after_a_release(known: FakeLab) -> None:
    known.scripts[""] = lambda request: opens(800.0, 6)
    release_target(target_id=guest().pk, by=None)
    wakeups.boot_next("guest")
    wakeups.boot_next("guest")
    assert HealthCheck.objects.count() == 1


def test_boots_and_checks_keep_off_each_other(known: FakeLab) -> None:
    local.take_up(
        known.spec({}, name="another", measure={"boots": 2, "iterations": 2, "warmup": 1}), say=print
    )
    target = claim_check("guest", force=True)
    assert target is not None
    assert claim_check("guest", force=True) is None
    assert claim_next_run(target="guest", by="me") is None
    # Its process was killed: what it held ends by itself.
    Target.objects.update(checked_until=timezone.now() - timedelta(seconds=1))
    local.build_all(Run.objects.latest("pk").experiment_id)
    assert claim_next_run(target="guest", by="me") is not None
    assert claim_check("guest", force=True) is None


def test_a_store_that_does_not_answer_holds_up_checks_and_nothing_else(
    known: FakeLab, monkeypatch: pytest.MonkeyPatch, client: Client
) -> None:
    def away(key: str, root: Path) -> bool:
        raise StoreUnreachable("the store does not answer")

    experiment = local.take_up(known.spec({}, name="waits"), say=print)
    ask_check(by=None, target_id=guest().pk)
    monkeypatch.setattr("lab.targets.health_checks.is_kept", away)
    assert due_checks() == []
    assert "target.guest" in queues_to_wake()
    local.work_through(experiment)
    assert client.get("/targets/guest/").status_code == 200
    assert guest().check_asked_at is not None


def test_a_target_without_a_good_kernel_says_what_would_give_it_one(db: None) -> None:
    with pytest.raises(FieldRefused, match="no known-good kernel"):
        ask_check(by=None, target_id=guest().pk)
    assert due_checks(timezone.now() + timedelta(days=2)) == []


def test_the_same_kernel_is_taken_as_long_as_it_is_there(known: FakeLab) -> None:
    older = Build.objects.get(artifact_key=known_kernel(guest()))
    made = make_artifact(known.home, 77)
    newer = make_build("n" * 64, state="built", artifact_key=made.key)
    record_check(guest().pk, Checked(True, environment={"artifact_key": newer.artifact_key}))
    assert known_kernel(guest()) == newer.artifact_key
    Build.objects.filter(pk=newer.pk).update(state="queued")
    assert known_kernel(guest()) == older.artifact_key
    Build.objects.filter(pk=newer.pk).update(state="built")
    artifacts_of(known.home).remove(made.key)
    assert known_kernel(guest()) == older.artifact_key


@pytest.mark.hostile
def test_machines_are_not_checked_with_a_kernel_that_a_stranger_chose(known: FakeLab) -> None:
    """It could behave well in its experiment, and badly in every check of a machine from then on."""
    assert known_kernel(guest())
    Experiment.objects.update(submitter=make_user("mallory", User.Role.SUBMITTER))
    with pytest.raises(
        FieldRefused,
        match="a successful experiment there by an operator, or on an archive's own revision, provides one",
    ):
        known_kernel(guest())
    assert due_checks(timezone.now() + timedelta(days=2)) == []
    Experiment.objects.update(submitter=make_user("olga", User.Role.OPERATOR))
    assert known_kernel(guest())


def test_upkeep_mails_operators_of_a_quarantine_and_says_so(
    db: None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    make_user("boss", User.Role.OPERATOR, email="boss@lab.example")
    target = Target.objects.create(name="box")
    assert tasks.tell_of_quarantines in [task for task, _ in upkeep.UPKEEP]
    tasks.tell_of_quarantines()
    assert mail.outbox == []
    quarantine_target(target.pk, "it smells")
    tasks.tell_of_quarantines()
    tasks.tell_of_quarantines()
    assert [sent.to for sent in mail.outbox] == [["boss@lab.example"]]
    assert (
        caplog.text.count(
            "told operators: box is in quarantine: 3 faults of the lab in a row, the last: it smells"
        )
        == 1
    )
