# SPDX-License-Identifier: GPL-2.0-or-later
"""The identity of a process that holds a lease, and whether that process still lives."""

import os
import socket
from pathlib import Path


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
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    # The second field is the program's name in brackets and may hold blanks; state and more follow.
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] in "ZX" else fields[19]
