# SPDX-License-Identifier: GPL-2.0-or-later
"""The CPU time that a sandboxed command used, and the time it was ready to run but the host ran something else.

A deadline of wall time alone blames a submission for a busy host. So the watcher samples how many of the command's processes are
ready to run. Where they got less than half of the CPU time that they were ready for, the host was too slow; a command that sleeps, waits
for itself or computes without end did not lack CPUs. The command can influence neither figure except by really being ready
to run while others have the CPU.

The control group counts the time. Without one it is summed over the living processes and the children that they have waited for.
"""

import contextlib
import os
import time
from pathlib import Path

from kernels.sandbox.memory import MemoryGroup

_EVERY_S = 1.0
# A shorter wait for a CPU happens on any host, and no deadline of the lab is near it.
_LEAST_S = 10.0
_TICKS = os.sysconf("SC_CLK_TCK")
# Fields of /proc/PID/stat after the command's name: state, parent, and the four times.
_STATE, _PARENT, _TIMES = 0, 1, slice(11, 15)


class CpuUse:
    """The CPU time of one command. pid: its outermost process; cores: how many CPUs it may use at once."""

    def __init__(self, group: MemoryGroup, pid: int, cores: int) -> None:
        self._group, self._pid = group, pid
        self._cores = max(1, min(cores, os.cpu_count() or 1))
        self._started = self._looked = time.monotonic()
        self._summed = 0.0
        self.ready_seconds = 0.0

    def look(self, *, every: float = _EVERY_S) -> None:
        """Sample the command's processes, at most once every `every` seconds."""
        now = time.monotonic()
        if now - self._looked < every:
            return
        stats = self._stats()
        ready = sum(fields[_STATE] == "R" for fields in stats)
        self.ready_seconds += min(ready, self._cores) * (now - self._looked)
        self._looked = now
        self._summed = max(
            self._summed, sum(int(tick) for fields in stats for tick in fields[_TIMES]) / _TICKS
        )

    @property
    def seconds(self) -> float:
        """CPU seconds used so far."""
        counted = self._group.cpu_seconds()
        return self._summed if counted is None else counted

    def starved(self) -> bool:
        """Return whether the command was ready to run most of the time and got less than half of that."""
        wall = time.monotonic() - self._started
        if self.ready_seconds < _LEAST_S:
            return False
        return self.ready_seconds > wall / 2 and self.seconds < self.ready_seconds / 2

    def _stats(self) -> list[list[str]]:
        members = self._group.members()
        if members:
            return [fields for pid in members if (fields := _stat(pid))]
        return _below(self._pid)


def _stat(pid: int | str) -> list[str]:
    """Return the fields of a process after its name, none if it is gone."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(") ")[2].split()
    return []


def _below(top: int) -> list[list[str]]:
    """Return the fields of all processes that a process started, directly or not."""
    stats = {
        int(path.name): fields
        for path in Path("/proc").iterdir()
        if path.name.isdecimal() and (fields := _stat(path.name))
    }
    inside, grown = {top}, True
    while grown:
        more = {pid for pid, fields in stats.items() if int(fields[_PARENT]) in inside} - inside
        inside, grown = inside | more, bool(more)
    return [stats[pid] for pid in inside if pid in stats]
