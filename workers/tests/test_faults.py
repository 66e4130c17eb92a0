# SPDX-License-Identifier: GPL-2.0-or-later
"""A live service hit by faults, and the checks that would see a breach."""

from __future__ import annotations

import fcntl
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
from bench.faults.campaign_file import (
    drawn,
)
from bench.faults.faults import STRIKES
from bench.faults.hand import SIZE
from bench.faults.invariants import told_by_history
from bench.faults.kinds import KINDS, stages_of
from bench.faults.leftovers import locks
from bench.faults.machine import descendants, kill, make_lies
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
    every = {(name, stage) for name, stages in stages_of().items() for stage in stages}
    first = list(islice(drawn(7, stages_of()), len(every)))
    assert set(first) == every
    assert first == list(islice(drawn(7, stages_of()), len(every)))


def test_every_kind_of_fault_can_be_carried_out() -> None:
    assert KINDS.keys() == STRIKES.keys()


def test_no_process_is_not_ones_own_group() -> None:
    assert not kill(0)


@pytest.mark.process
def test_a_process_sees_the_clock_that_it_is_given(tmp_path: Path) -> None:
    lies = make_lies(tmp_path)
    lies.clock(-5 * 3600)
    asked = "import datetime, time; print(time.time()); print(datetime.datetime.now().timestamp())"
    done = subprocess.run(
        [sys.executable, "-c", asked],
        env=os.environ | lies.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    wanted = (datetime.now(UTC) - timedelta(hours=5)).timestamp()
    assert all(abs(float(line) - wanted) < 60 for line in done.stdout.split())


@pytest.mark.process
def test_a_process_sees_as_much_free_disk_as_it_is_told(tmp_path: Path) -> None:
    lies = make_lies(tmp_path)
    asked = [sys.executable, "-c", f"import shutil; print(shutil.disk_usage({str(tmp_path)!r}).free)"]
    answers = []
    for free in (None, 0, 1 << 50):
        lies.disk(free)
        done = subprocess.run(
            asked, env=os.environ | lies.environment, capture_output=True, text=True, check=True
        )
        answers.append(int(done.stdout))
    assert answers[0] > 0
    assert answers[1:] == [0, 1 << 50]


def test_a_lock_of_a_lab_is_left_behind_and_one_of_the_same_number_on_another_disk_is_not(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with (home / "up.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        (line,) = locks(home)
        assert line.startswith(f"lock {home}/up.lock taken by process {os.getpid()} (")
        place = os.fstat(file.fileno())
        number = f"{os.major(place.st_dev):02x}:{os.minor(place.st_dev):02x}:{place.st_ino}"
        elsewhere = tmp_path / "elsewhere"
        elsewhere.write_text(Path("/proc/locks").read_text().replace(number, f"ff:ff:{place.st_ino}"))
        assert list(locks(home, elsewhere)) == []
    assert list(locks(home)) == []


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
    """One of each sort, in two pieces of one campaign; `make test-faults` injects as many as one likes.

    This seed draws each of them first at a stage that soon comes again.
    """
    written = tmp_path / "campaign.json"
    sorts = "flush redis,kill target,far kill,store wrong,kill postgres"
    for count in ("3", "5"):
        options = ("--count", count, "--seconds", "90", "--lease", "6", "--seed", "4475", "--only", sorts)
        done = in_a_piece(written, *options)
        assert written.exists(), done.stdout + done.stderr
        assert done.returncode == 0, done.stdout + done.stderr
    campaign: dict[str, Any] = json.loads(written.read_text())
    assert [
        breach for piece in campaign["pieces"] for breach in piece["breaches"] if breach["kind"] != "failed"
    ] == []
    assert [piece["left"] for piece in campaign["pieces"]] == [[], []]
    assert campaign["sums"]["hit"] >= 3, done.stdout
    assert campaign["sums"]["runs"] >= 10, done.stdout
    numbers = [injection["number"] for injection in campaign["injected"]]
    assert numbers == sorted(set(numbers))
    # What the last piece still had in hand is drawn by the next.
    assert numbers[-1] <= len(numbers) + SIZE
    assert all(piece["hand"] == [] for piece in campaign["pieces"])


def in_a_piece(written: Path, *options: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KPERFLAB_")}
    # Without the kernels of this machine's own lab there are no guests, so libvirt is left to other tests.
    environment["KPERFLAB_HOME"] = str(written.with_name("empty"))
    return subprocess.run(
        [sys.executable, "-m", "bench.faults", *options, "--campaign", str(written)],
        env=environment | {"PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=1200,
    )
