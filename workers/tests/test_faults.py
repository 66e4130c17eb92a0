# SPDX-License-Identifier: GPL-2.0-or-later
"""A live service hit by faults, and the checks that would see a breach."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from bench.faults.audit import Entry
from bench.faults.campaign import Plan, schedule
from bench.faults.faults import FAULTS, OF_THE_MACHINE
from bench.faults.invariants import told_by_history
from bench.faults.machine import descendants, make_clock
from lab.models.states import MOVES, RunState

ROOT = Path(__file__).resolve().parents[2]
RUN = dict(MOVES[RunState])
CLAIMED, DONE = ("queued", "running"), ("running", "done")


def entry(was: str, became: str, token: str = "a") -> Entry:
    return Entry(datetime.now(UTC), "run", 1, was, became, token, "here:1:1", 1, "")


@pytest.mark.parametrize(
    ("history", "told"),
    [
        ([entry(*CLAIMED), entry(*DONE)], []),
        ([entry(*CLAIMED), entry("running", "queued"), entry(*CLAIMED, "b"), entry(*DONE, "b")], []),
        ([entry(*CLAIMED), entry(*DONE), entry(*DONE)], ["doubled"]),
        ([entry(*CLAIMED), entry("running", "queued"), entry(*CLAIMED, "b"), entry(*DONE)], ["doubled"]),
        ([entry(*CLAIMED), entry(*DONE), entry("done", "queued")], ["illegal"]),
    ],
)
def test_a_run_that_is_recorded_twice_or_by_a_late_claim_is_told(
    history: list[Entry], told: list[str]
) -> None:
    assert [breach.kind for breach in told_by_history("run", 1, history, RUN)] == told


def test_every_fault_is_injected_at_every_stage_before_one_comes_again() -> None:
    known = {**FAULTS, **OF_THE_MACHINE}
    every = {(name, stage) for name, (_, stages) in known.items() for stage in stages}
    drawn = [(name, stage) for name, _, stage in islice(schedule(Plan(1, 7), machine=True), len(every))]
    assert set(drawn) == every
    again = [(name, stage) for name, _, stage in islice(schedule(Plan(1, 7), machine=True), len(every))]
    assert drawn == again


@pytest.mark.process
def test_a_process_sees_the_clock_that_it_is_given(tmp_path: Path) -> None:
    clock = make_clock(tmp_path)
    clock.step(-5 * 3600)
    asked = "import datetime, time; print(time.time()); print(datetime.datetime.now().timestamp())"
    done = subprocess.run(
        [sys.executable, "-c", asked],
        env=os.environ | clock.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    wanted = (datetime.now(UTC) - timedelta(hours=5)).timestamp()
    assert all(abs(float(line) - wanted) < 60 for line in done.stdout.split())


@pytest.mark.process
def test_processes_below_one_are_found_by_their_names() -> None:
    command = ["sh", "-c", "sleep 60 & wait"]
    with subprocess.Popen(command) as shell:
        try:
            while "sleep" not in descendants(shell.pid).values():
                pass
        finally:
            for child in descendants(shell.pid):
                os.kill(child, 9)
            shell.kill()
    assert descendants(shell.pid) == {}


@pytest.mark.faults
def test_a_lab_under_faults_loses_nothing_and_records_nothing_twice(tmp_path: Path) -> None:
    """Some of them; `make test-faults` injects as many as one likes."""
    written = tmp_path / "account.json"
    command = [sys.executable, "-m", "bench.faults", "--count", "18", "--seconds", "120", "--lease", "6"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KPERFLAB_")}
    done = subprocess.run(
        [*command, "--write", str(written)],
        env=environment | {"PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert written.exists(), done.stdout + done.stderr
    account: dict[str, Any] = json.loads(written.read_text())
    assert [one for one in account["breaches"] if one["kind"] != "failed"] == [], done.stdout
    assert account["left"] == [], done.stdout
    assert sum(one["hit"] for one in account["injected"]) >= 3, done.stdout
    assert account["runs"] >= 10, done.stdout
    assert done.returncode == 0, done.stdout
