# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests that disappear or say too much: their kernel's outcome, a line in the audit log, and no fault of the target."""

from __future__ import annotations

import pytest

from lab.models import AuditEntry, Target
from lab.runs.claim import MOST_ATTEMPTS
from lab.runs.order import next_run
from workers import local
from workers.drivers import streams
from workers.tests.conftest import FakeLab
from workers.tests.rawguest import RawGuest
from workers.tests.test_hostile_guests import attacked

pytestmark = [pytest.mark.hostile, pytest.mark.process]


def test_a_console_beyond_its_bound_is_a_line_in_the_audit_log(
    fake_lab: FakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lab.runs.guest_limits.CONSOLE_BYTES", 5000)
    monkeypatch.setattr(streams, "CONSOLE_LIMIT", 5000)

    def act(guest: RawGuest) -> None:
        guest.greets()
        guest.console.sendall(b"x" * 4000 + b"\n")
        guest.console.sendall(b"y" * 4000 + b"\n")
        guest.measures()
        guest.leaves()

    attacked(fake_lab, monkeypatch, act)
    assert AuditEntry.objects.filter(route="guest", rule="console cut").count() == 1


def test_a_guest_that_vanishes_each_time_is_its_kernels_outcome_and_never_its_targets_fault(
    fake_lab: FakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.tests.rawguest._Remote.how_it_ended", lambda self: "unclear")
    run, _driver = attacked(fake_lab, monkeypatch, lambda guest: guest.greets())
    for attempt in range(2, MOST_ATTEMPTS + 1):
        assert (run.state, run.blame, run.outcome) == ("queued", "lab", "lost")
        assert next_run(run.experiment_id) == run.pk
        local.boot_next(run.experiment_id)
        run.refresh_from_db()
        assert run.attempt == attempt
    assert (run.state, run.blame, run.outcome) == ("failed", "kernel", "panicked")
    assert f"in attempt {MOST_ATTEMPTS} of {MOST_ATTEMPTS}" in run.problem
    assert not Target.objects.filter(faults__gt=0).exists()
    assert not Target.objects.exclude(quarantined_at=None).exists()
