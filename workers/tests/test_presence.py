# SPDX-License-Identifier: GPL-2.0-or-later
"""The details that a worker reports besides its row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import workers.app  # noqa: F401
from workers import fleet, presence


@pytest.mark.django_db
def test_the_log_tells_why_nothing_is_taken_once_and_when_that_is_over(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    reasons = iter(["", "old code", "old code", "", ""])
    monkeypatch.setattr("workers.presence.why_idle", lambda **_given: next(reasons))
    one = presence.Presence((), builds=False)
    with caplog.at_level("INFO", "workers.presence"):
        for _ in range(5):
            one._report()
    assert caplog.messages == ["nothing is taken: old code", "work is taken again"]


@pytest.mark.django_db
def test_an_idle_worker_sends_three_statements_at_a_time(
    settings: Any, tmp_path: Path, django_assert_num_queries: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.HOME = tmp_path
    monkeypatch.setattr("workers.wakeups.wake", lambda queue: None)
    first, second = (presence.Presence((f"target.{name}",), builds=False) for name in "ab")
    first._report()
    fleet.keep_going()
    # Its version, its report, and whether another one lately did what beat does.
    with django_assert_num_queries(3):
        second._report()
        fleet.keep_going()
