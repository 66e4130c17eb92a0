# SPDX-License-Identifier: GPL-2.0-or-later
"""The details that a worker reports besides its row."""

from __future__ import annotations

import pytest

import workers.app  # noqa: F401
from workers import presence


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
