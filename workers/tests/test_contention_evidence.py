# SPDX-License-Identifier: GPL-2.0-or-later
"""Replays of a recorded boot: the worker stays alive during them, and their evidence is of the whole recording."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from kernels.sandbox.reader import read_apart
from workers.drivers.base import BootRequest
from workers.drivers.fake import Script
from workers.lease import Lease
from workers.microscope.contention import Contention
from workers.microscope.replay import replay
from workers.tests.conftest import FakeLab
from workers.tests.fakeexact import PROGRAM, call_tree
from workers.tests.test_contention_run import CPUS, NODE, contending, outcomes, printed, recorder, run
from workers.tests.test_contention_run import locks as locks

pytestmark = pytest.mark.process


def test_a_worker_gives_a_sign_of_life_before_each_replay_and_reading(
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

    def reading_seen(*given: Any, **named: Any) -> Any:
        seen.append("reading")
        return read_apart(*given, **named)

    monkeypatch.setattr(Lease, "beat", beat_seen)
    monkeypatch.setattr("workers.collect.contended.replay", replay_seen)
    monkeypatch.setattr("workers.collect.contended.read_apart", reading_seen)
    fake_lab.scripts[""] = contending(shared=True)
    assert outcomes(run(fake_lab)) == {("finished", "", "")}
    assert {"replay", "reading"} <= set(seen)
    assert all(before == "beat" for before, work in pairwise(seen) if work != "beat")


def test_a_function_waits_as_long_as_in_all_its_calls_together(
    fake_lab: FakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.collect.contended._MOST_ROWS", 1)

    def script(request: BootRequest) -> Script:
        for cpu in range(max(CPUS)):
            recording = recorder(cpu, shared=True, node=NODE + cpu % 2)
            size = len(recording.bytes())
            (request.directory / f"accesses.0.{cpu}").write_bytes(recording.bytes(why=size << 32))
        rows = (line.split() for line in request.kernel.with_name("System.map").read_text().splitlines())
        function = next(int(address, 16) for address, _, name in rows if name == "find_inode_fast")
        return printed(call_tree([(function, PROGRAM, 500, 1), (function, NODE, 500, 1)]))

    fake_lab.scripts[""] = script
    experiment = run(fake_lab)
    assert outcomes(experiment) == {("finished", "", "")}
    evidence = experiment.runs.filter(outcome="finished")[0].extras["contention"]
    assert evidence["functions"] == [{"chain": ["find_inode_fast"], "cycles": evidence["waiting"]}]
