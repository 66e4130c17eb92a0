# SPDX-License-Identifier: GPL-2.0-or-later
"""The details that a worker reports besides its row."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.utils import timezone

import workers.app  # noqa: F401
from lab.leases.version import code_version, deploy
from lab.models import Chore, Worker
from workers import fleet, presence


@pytest.mark.django_db
def test_the_log_tells_why_nothing_is_taken_once_and_when_that_is_over(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    reasons = iter(["", "old code", "old code", "", ""])
    monkeypatch.setattr("workers.presence.why_idle", lambda **_given: next(reasons))
    worker = presence.Presence((), builds=False)
    with caplog.at_level("INFO", "workers.presence"):
        for _ in range(5):
            worker._report()
    assert caplog.messages == ["nothing is taken: old code", "work is taken again"]


@pytest.mark.django_db
def test_an_idle_worker_sends_one_statement_at_a_time(
    settings: Any, tmp_path: Path, django_assert_num_queries: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.HOME = tmp_path
    monkeypatch.setattr("workers.wakeups.wake", lambda queue: None)
    first, second = (presence.Presence((f"target.{name}",), builds=False) for name in "ab")
    second._report()
    fleet.keep_going(first._report())
    # Its report brings the lab's version, and whether another one lately did what beat does; SQLite is asked for each.
    with django_assert_num_queries(1 if connection.vendor == "postgresql" else 3):
        fleet.keep_going(second._report())


@pytest.mark.django_db
def test_one_worker_does_for_all_what_beat_does(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.HOME = tmp_path
    woken: list[int] = []
    monkeypatch.setattr("workers.wakeups.dispatch", lambda: woken.append(1))
    one = presence.Presence(("target.a",), builds=False)
    for _ in range(3):
        fleet.keep_going(one._report())
    assert len(woken) == 1
    Chore.objects.update(done_at=timezone.now() - timedelta(seconds=presence.KEPT_GOING_S + 1))
    fleet.keep_going(one._report())
    assert len(woken) == 2


@pytest.mark.django_db
def test_a_worker_says_at_once_that_the_lab_has_another_version_now(settings: Any, tmp_path: Path) -> None:
    settings.HOME = tmp_path
    one = presence.Presence(("target.a",), builds=False)
    one._report()
    row = Worker.objects.get()
    assert (row.queues, row.version, row.idle_reason) == (["target.a"], code_version(), "")
    before = row.seen_at
    deploy("another")
    one._report()
    row.refresh_from_db()
    assert row.idle_reason == f"it runs version {code_version()}, the lab another: update it, then restart it"
    assert row.seen_at >= before
    deploy(code_version())
    one._report()
    row.refresh_from_db()
    assert row.idle_reason == ""
    assert row.disk_free == pytest.approx(shutil.disk_usage(tmp_path).free, rel=0.5)


@pytest.mark.django_db
def test_where_nobody_answers_a_worker_is_not_told_that_another_kept_the_lab_going(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def away(*_given: object, **_named: object) -> None:
        raise OperationalError("the database is down")

    monkeypatch.setattr("workers.presence.report_worker", away)
    assert presence.Presence((), builds=False)._report() is False
