# SPDX-License-Identifier: GPL-2.0-or-later
"""Replays of a recorded boot: the worker stays alive during them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from workers.lease import Lease
from workers.microscope.contention import Contention
from workers.microscope.replay import replay
from workers.tests.conftest import FakeLab
from workers.tests.test_contention_run import contending, outcomes, run
from workers.tests.test_contention_run import locks as locks

pytestmark = pytest.mark.process


def test_a_worker_gives_a_sign_of_life_before_each_replay(
    fake_lab: FakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    beat = Lease.beat

    def beat_seen(lease: Lease) -> None:
        seen.append("beat")
        beat(lease)

    def replay_seen(*given: Any) -> Contention:
        seen.append("replay")
        return replay(*given)

    monkeypatch.setattr(Lease, "beat", beat_seen)
    monkeypatch.setattr("workers.collect.contended.replay", replay_seen)
    fake_lab.scripts[""] = contending(shared=True)
    assert outcomes(run(fake_lab)) == {("finished", "", "")}
    assert "replay" in seen
    assert ("replay", "replay") not in pairwise(seen)
