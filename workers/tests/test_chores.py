# SPDX-License-Identifier: GPL-2.0-or-later
"""Rare chores, such as the retention policy, are due by when they last ran, however often beat or a worker starts."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from lab.errors import LabError
from lab.models import Chore
from lab.operations.retention import Expiry
from lab.storage.inventory import InventoryItem
from workers import tasks, upkeep
from workers.repeating import Timetable

pytestmark = pytest.mark.django_db(transaction=True)

# A message that is lost, or finds the database away, is made up for within this time.
LONGEST_S = 300.0


@pytest.fixture
def expired(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record when the retention policy is applied."""
    calls: list[str] = []

    # Nothing of the tests' own state root is looked at, or removed.
    nothing = Expiry((), (InventoryItem("run", "1-1", here=3, stored=5),), None)
    monkeypatch.setattr(tasks, "plan_expiry", lambda: nothing)
    monkeypatch.setattr(tasks, "expire", applying(calls))
    return calls


def applying(calls: list[str]) -> Callable[[object], tuple[object, ...]]:
    def expire(plan: object) -> tuple[object, ...]:
        calls.append("applied")
        return ()

    return expire


def ago(**columns: timedelta) -> None:
    Chore.objects.update(**{name: timezone.now() - age for name, age in columns.items()})


def test_a_chore_is_done_once_a_period_however_often_it_is_sent(expired: list[str]) -> None:
    for _ in range(3):
        tasks.expire_files()
    assert expired == ["applied"]
    ago(done_at=timedelta(hours=23, minutes=59))
    tasks.expire_files()
    assert expired == ["applied"]
    ago(done_at=timedelta(hours=24, seconds=1))
    tasks.expire_files()
    assert expired == ["applied"] * 2


def test_what_the_policy_left_is_noted_with_it(expired: list[str]) -> None:
    tasks.expire_files()
    noted = Chore.objects.get(name="expire_files").found
    assert (noted["home"]["run"], noted["store"]["run"], noted["home"]["artifact"]) == (3, 5, 0)


def test_a_message_of_beats_that_is_lost_is_sent_again_within_minutes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The broker or the worker was away, and beat restarts before the day is over."""
    timetable = Timetable(*upkeep.UPKEEP, *upkeep.FLEET)
    passed = time.monotonic
    for later in (0.0, LONGEST_S):
        sent: list[object] = []
        monkeypatch.setattr("workers.repeating.monotonic", lambda later=later: passed() + later)
        timetable.do_due(sent.append)
        assert tasks.expire_files in sent


def test_everything_is_sent_so_often_that_a_lost_message_costs_minutes() -> None:
    late = [task.name for task, every_s in (*upkeep.UPKEEP, *upkeep.FLEET) if every_s > LONGEST_S]
    assert late == []


def broken(error: BaseException) -> Callable[[object], tuple[object, ...]]:
    def expire(plan: object) -> tuple[object, ...]:
        raise error

    return expire


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("x")])
def test_a_chore_that_was_broken_off_is_begun_again_within_the_hour(
    monkeypatch: pytest.MonkeyPatch, expired: list[str], error: BaseException
) -> None:
    monkeypatch.setattr(tasks, "expire", broken(error))
    with pytest.raises(type(error)):
        tasks.expire_files()
    monkeypatch.setattr(tasks, "expire", applying(expired))
    tasks.expire_files()
    assert expired == [], "its worker may still be running it"
    ago(begun_at=timedelta(minutes=61))
    tasks.expire_files()
    assert expired == ["applied"]


def test_a_policy_that_waits_for_a_store_is_no_policy_that_was_applied(
    monkeypatch: pytest.MonkeyPatch, expired: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tasks, "expire", broken(LabError("the store is down")))
    tasks.expire_files()
    assert "expire_files waits: the store is down" in caplog.text
    monkeypatch.setattr(tasks, "expire", applying(expired))
    ago(begun_at=timedelta(minutes=61))
    tasks.expire_files()
    assert expired == ["applied"]


def test_a_clock_that_was_set_back_keeps_no_chore_from_being_done(expired: list[str]) -> None:
    tasks.expire_files()
    ago(done_at=timedelta(days=-30))
    tasks.expire_files()
    assert expired == ["applied"] * 2
    assert Chore.objects.filter(done_at__gt=timezone.now() + timedelta(seconds=5)).count() == 0


def test_one_machines_worker_that_starts_again_does_not_begin_with_every_chore(expired: list[str]) -> None:
    for _ in range(2):
        Timetable((tasks.expire_files, 60.0)).do_due(lambda task: task())
    assert expired == ["applied"]
