# SPDX-License-Identifier: GPL-2.0-or-later
"""`perf c2c` after the passes of a profiled run: with the perf of this machine, which refuses, and with a stand-in.

No machine of the tests has a PMU that samples memory accesses: what perf would print there is made up.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from workloads.guest.plan import Step
from workloads.guest.records import Record
from workloads.passes import passes_of
from workloads.readings import RECORDER_MARK
from workloads.shared_lines import MOST_TEXT, REPORT, WHY, read_shared_lines

pytestmark = pytest.mark.process
STEP = Step("walk", ("/bin/echo", "opens=3"), 10, "measure")
STAND_IN = """#!/bin/sh
echo "$@" >>{calls}
case "$1 $2" in
"mem record") {list} ;;
"c2c record") {record} ;;
"c2c report") {report} ;;
esac
"""
WRITES = 'while [ "$1" != -o ]; do shift; done; echo data >"$2"; shift 3; exec "$@"'
PRINTS = "echo; echo '  Total Shared Cache Lines : 2'"


class Guest:
    """Runs the pass in a directory of its own, with the stand-in before the machine's own perf."""

    def __init__(self, tmp_path: Path) -> None:
        self.place = tmp_path
        self.calls = tmp_path / "calls"

    def stand_in(self, listed: str = "true", record: str = WRITES, report: str = PRINTS) -> None:
        (self.place / "bin").mkdir()
        perf = self.place / "bin" / "perf"
        perf.write_text(STAND_IN.format(calls=self.calls, list=listed, record=record, report=report))
        perf.chmod(0o755)

    def run(self, *, harness: bool = True) -> tuple[str, str]:
        (step,) = (
            step
            for step in passes_of(STEP, harness=harness, hz="99", off_cpu=False)
            if step.name.endswith("c2c")
        )
        argv = [part.replace("/tmp/", f"{self.place}/") for part in step.argv]
        path = f"{self.place / 'bin'}:{os.environ['PATH']}"
        done = subprocess.run(argv, env={"PATH": path}, capture_output=True, timeout=60)
        assert done.returncode == 0, done.stderr
        records = [
            Record(number, "file", name, (self.place / Path(name).name).read_bytes())
            for number, name in enumerate((REPORT, WHY), 1)
            if (self.place / Path(name).name).exists()
        ]
        return read_shared_lines(records)


@pytest.fixture
def guest(tmp_path: Path) -> Guest:
    return Guest(tmp_path)


def test_it_is_the_last_pass_before_the_symbols_of_the_kernel() -> None:
    names = [step.name for step in passes_of(STEP, harness=True, hz="99", off_cpu=True)]
    assert names[-2:] == [f"walk{RECORDER_MARK}c2c", f"walk{RECORDER_MARK}symbols"]


@pytest.mark.skipif(shutil.which("perf") is None, reason="this machine has no perf")
def test_the_perf_of_this_machine_says_why_it_has_no_memory_events(guest: Guest) -> None:
    if not subprocess.run(["perf", "mem", "record", "-e", "list"], capture_output=True).returncode:
        pytest.skip("this machine's PMU samples memory accesses")
    assert guest.run() == ("", "failed: memory events not supported")


def test_a_machine_without_perf_is_no_failed_step(guest: Guest) -> None:
    guest.stand_in(listed="exit 127")
    assert guest.run() == ("", "perf mem does not list memory events")


def test_where_memory_events_are_there_the_report_comes_home(guest: Guest) -> None:
    guest.stand_in()
    (guest.place / "perf.lock.data").write_bytes(b"an earlier recording")
    text, why = guest.run()
    assert (text.strip(), why) == ("Total Shared Cache Lines : 2", "")
    listed, recorded, reported = guest.calls.read_text().splitlines()
    data = guest.place / "perf.c2c.data"
    assert listed == "mem record -e list"
    assert recorded == (
        f"c2c record -a -D -1 --control fifo:{guest.place}/perf.ctl,{guest.place}/perf.ack -o {data} "
        f"-- /bin/echo opens=3 control={guest.place}/perf.ctl,{guest.place}/perf.ack"
    )
    assert reported == f"c2c report --stdio -i {data}"
    assert not list(guest.place.glob("perf*.data"))


def test_a_program_of_its_own_is_recorded_as_a_whole(guest: Guest) -> None:
    guest.stand_in()
    guest.run(harness=False)
    assert guest.calls.read_text().splitlines()[1].endswith("perf.c2c.data -- /bin/echo opens=3")


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ({"record": "exit 3"}, "perf c2c record ended with status 3"),
        ({"report": "true"}, "perf c2c report printed nothing"),
        ({"report": "exit 1"}, "perf c2c report printed nothing"),
        ({"listed": "echo 'no  PMU\n here' >&2; exit 1"}, "no PMU here"),
    ],
)
def test_whatever_fails_is_told_and_fails_nothing_else(
    guest: Guest, broken: dict[str, str], why: str
) -> None:
    guest.stand_in(**broken)
    assert guest.run() == ("", why)


@pytest.mark.hostile
@pytest.mark.parametrize(
    ("report", "why", "read"),
    [
        (b"x" * (4 * MOST_TEXT), b"", ("x" * MOST_TEXT, "")),
        (b"\xff\xfe", b"", ("\ufffd\ufffd", "")),
        (b"", b"", ("", "it left no report")),
        (b" \n", b"", ("", "it left no report")),
        (b"lines", b"a\nreason " * 500, ("", ("a reason " * 500)[:1000])),
    ],
)
def test_what_a_guest_sends_is_bounded(report: bytes, why: bytes, read: tuple[str, str]) -> None:
    records = [Record(1, "file", REPORT, report), Record(2, "file", WHY, why)]
    assert read_shared_lines(records) == read


def test_a_run_that_was_not_asked_says_nothing() -> None:
    assert read_shared_lines([]) == ("", "")
