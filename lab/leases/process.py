# SPDX-License-Identifier: GPL-2.0-or-later
"""The identity of a process that holds a lease, and whether that process still lives."""

import os
import socket

from kernels.processes.stats import read_process


def worker_identity() -> str:
    """Return `host:pid:start`; the start time tells a process from a later one of the same pid."""
    return f"{socket.gethostname()}:{os.getpid()}:{_started(os.getpid())}"


def is_alive(identity: str) -> bool:
    """Return whether the claiming process exists; a process of another host counts as alive.

    Its lease decides then.
    """
    host, pid, started = [*identity.rsplit(":", 2), "", ""][:3]
    if host != socket.gethostname():
        return True
    return pid.isdecimal() and bool(started) and _started(int(pid)) == started


def _started(pid: int) -> str:
    """The process's start in clock ticks since boot, nothing when there is no such process."""
    process = read_process(pid)
    return str(process.started) if process and process.state not in "ZX" else ""
