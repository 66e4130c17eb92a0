# SPDX-License-Identifier: GPL-2.0-or-later
"""Git and the programs it starts end when the process that started them ends, even by SIGKILL."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kernels.processes.lifeline import lifeline

pytestmark = [pytest.mark.hostile, pytest.mark.process]

# A process that asks a host which never answers; prints a line first.
ASKING = """
import sys
from kernels.trees.git import try_git
print("asking", flush=True)
try_git("/dev/null", "ls-remote", sys.argv[1], environment={"GIT_ALLOW_PROTOCOL": "http"}, deadline_s=600)
"""


def family(mark: str) -> list[int]:
    """Every process whose command line holds the mark."""
    pids = []
    for path in Path("/proc").iterdir():
        if path.name.isdecimal() and int(path.name) != os.getpid():
            try:
                line = (path / "cmdline").read_bytes()
                state = (path / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if mark.encode() in line and state != "Z":
                pids.append(int(path.name))
    return pids


def await_that(is_so: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_no_git_outlives_a_process_that_is_killed_while_a_host_is_silent(number: int) -> None:
    with socket.socket() as tarpit:
        tarpit.bind(("127.0.0.1", 0))
        tarpit.listen()
        address = f"http://127.0.0.1:{tarpit.getsockname()[1]}/x.git"
        asking = subprocess.Popen([sys.executable, "-c", ASKING, address], stdout=subprocess.PIPE)
        connection, _ = tarpit.accept()
        with connection:
            # The process, its git, and git's helper for http that waits for the answer; the guard's line has it, too.
            assert len(family(address)) >= 3
            asking.send_signal(number)
            asking.wait(30)
            await_that(lambda: family(address) == [])


def test_a_command_that_ends_leaves_no_guard() -> None:
    mark = f"lifeline-{os.getpid()}-{time.monotonic_ns()}"
    with lifeline() as held:
        process = subprocess.Popen(
            held.guarded(["sh", "-c", "cat; exit 3", mark]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            pass_fds=(held.descriptor,),
        )
        out, err = process.communicate(b"data", timeout=60)
        assert (process.returncode, out, err) == (3, b"data", b"")
    await_that(lambda: family(mark) == [])


def test_many_descriptors_are_no_hindrance() -> None:
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(60)]
    try:
        test_a_command_that_ends_leaves_no_guard()
    finally:
        for descriptor in opened:
            os.close(descriptor)
