# SPDX-License-Identifier: GPL-2.0-or-later
"""The CPU time that a sandboxed command used, and the time it was ready to run.

A deadline of wall time alone blames a submission for a busy host. So the watcher samples how many of the command's processes are
ready to run. If they got less than half of the CPU time that they were ready for, the host was too slow; a command that sleeps, waits
for itself or computes without end did not lack CPUs. The command can influence the result only by really being ready
to run while other processes have the CPU.

The control group counts the time. Without one it is summed over the living processes and the children that they have waited for.
"""

import os
import time

from kernels.processes.stats import family_of, read_process
from kernels.sandbox.memory import MemoryGroup

_EVERY_S = 1.0
# Shorter waits for a CPU happen on any host, and every deadline of the lab is far longer.
_LEAST_S = 10.0


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
        members = self._group.members()
        found = [read_process(pid) for pid in members] if members else family_of(self._pid)
        processes = [process for process in found if process]
        ready = sum(process.state == "R" for process in processes)
        self.ready_seconds += min(ready, self._cores) * (now - self._looked)
        self._looked = now
        self._summed = max(self._summed, sum(process.cpu_s + process.waited_s for process in processes))

    @property
    def seconds(self) -> float:
        """CPU seconds used so far."""
        counted = self._group.cpu_seconds()
        return self._summed if counted is None else counted

    def starved(self) -> bool:
        """Return whether the command was ready to run most of the time and got less than half of the CPU time it was ready for."""
        wall = time.monotonic() - self._started
        if self.ready_seconds < _LEAST_S:
            return False
        return self.ready_seconds > wall / 2 and self.seconds < self.ready_seconds / 2
