# SPDX-License-Identifier: GPL-2.0-or-later
"""A process with all that it started: what they use together, and how to end them."""

import os
import signal
import stat
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from kernels.processes.stats import family_of

_WAIT_S = 10.0
# A process that starts others as fast as they are killed is itself stopped, so that a few rounds find all.
_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Usage:
    """received: bytes of the regular files they have open to write; cpu_s: of those that live; memory: resident bytes."""

    received: int = 0
    cpu_s: float = 0.0
    memory: int = 0


def usage_of(pid: int) -> Usage:
    """Measure a process and its descendants; those that end meanwhile count nothing."""
    family = family_of(pid)
    return Usage(
        received=sum(_written(process.pid) for process in family),
        cpu_s=sum(process.cpu_s for process in family),
        memory=sum(process.memory for process in family),
    )


def end_all(process: subprocess.Popen[bytes]) -> None:
    """Kill a child of ours and everything that it started, and wait for it.

    All are stopped first, so that none starts another while they are counted, nor loses its parent.
    """
    stopped: set[int] = set()
    for _ in range(_ROUNDS):
        family = {member.pid for member in family_of(process.pid)}
        if family <= stopped:
            break
        for pid in family - stopped:
            _send(pid, signal.SIGSTOP)
        stopped |= family
    for pid in stopped - {process.pid}:
        _send(pid, signal.SIGKILL)
    # Our child keeps its number until we wait for it.
    process.kill()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_WAIT_S)


def _send(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _written(pid: int) -> int:
    """The sizes of the regular files that a process has open to write: what git receives is one pack."""
    total = 0
    with suppress(OSError):
        for file in Path(f"/proc/{pid}/fd").iterdir():
            total += _size_written(file)
    return total


def _size_written(file: Path) -> int:
    with suppress(OSError):
        status = file.stat()
        if stat.S_ISREG(status.st_mode) and _flags(file) & (os.O_WRONLY | os.O_RDWR):
            return status.st_size
    return 0


def _flags(file: Path) -> int:
    lines = (file.parent.parent / "fdinfo" / file.name).read_text().splitlines()
    return next((int(line.split()[1], 8) for line in lines if line.startswith("flags:")), 0)


def end_at_sigterm() -> None:
    """Let SIGTERM raise SystemExit in this process, once: a second one would interrupt what the first one ends in good order."""
    signal.signal(signal.SIGTERM, _leave)


def _leave(_number: int, _frame: object) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit
