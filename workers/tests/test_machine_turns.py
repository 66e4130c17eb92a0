# SPDX-License-Identifier: GPL-2.0-or-later
"""A machine's turns, taken by real processes that want it alone, share it or wait for it."""

from __future__ import annotations

import fcntl
import select
import subprocess
import sys
from pathlib import Path

import pytest

from workers.machine_turns import turn
from workers.tests.machines import await_true

pytestmark = pytest.mark.process

HOLD = """
import sys
from pathlib import Path
from workers.machine_turns import turn
with turn(Path(sys.argv[1]), sys.argv[2]):
    print("held", flush=True)
    sys.stdin.readline()
"""


def hold(home: Path, how: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", HOLD, str(home), how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": str(Path(__file__).parents[2])},
    )


def await_queued(home: Path) -> None:
    """Wait until a process waits for the machine: it has the turn."""

    def queued() -> bool:
        with (home / "machine.turn").open("a") as queue:
            try:
                fcntl.flock(queue, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    await_true(queued, "somebody waits for the machine")


def held(process: subprocess.Popen[str], seconds: float = 60.0) -> bool:
    """Return whether it has the machine within this time."""
    assert process.stdout
    return bool(select.select([process.stdout], [], [], seconds)[0])


def let_go(process: subprocess.Popen[str]) -> None:
    process.communicate("\n", timeout=60)


def test_builds_share_the_machine_and_a_timed_guest_waits_for_them(tmp_path: Path) -> None:
    first, two = hold(tmp_path, "shared"), hold(tmp_path, "shared")
    assert held(first)
    assert held(two)
    guest = hold(tmp_path, "alone")
    await_queued(tmp_path)
    assert not held(guest, 1.0)
    let_go(first)
    let_go(two)
    assert held(guest)
    let_go(guest)


def test_who_waits_for_the_machine_alone_is_not_passed_by(tmp_path: Path) -> None:
    build = hold(tmp_path, "shared")
    assert held(build)
    guest = hold(tmp_path, "alone")
    await_queued(tmp_path)
    assert not held(guest, 1.0)
    late = hold(tmp_path, "shared")
    assert not held(late, 1.0)
    let_go(build)
    assert held(guest)
    assert not held(late, 0.5)
    let_go(guest)
    assert held(late)
    let_go(late)


def test_a_killed_process_holds_no_turn(tmp_path: Path) -> None:
    guest = hold(tmp_path, "alone")
    assert held(guest)
    guest.kill()
    guest.wait()
    with turn(tmp_path, "shared"):
        pass


def test_what_boots_elsewhere_waits_for_nobody(tmp_path: Path) -> None:
    with turn(tmp_path, "alone"):
        elsewhere = hold(tmp_path, "free")
        assert held(elsewhere)
        let_go(elsewhere)
