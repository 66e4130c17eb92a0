# SPDX-License-Identifier: GPL-2.0-or-later
"""Limit the memory of everything a command starts, where cgroups allow it, and report whether the kernel killed any of it.

The limits of prlimit apply to each process alone; a control group limits them together, so that a
hostile build meets its own limit before the machine's. Only root may make one; other users do without.

A process that the kernel kills for memory looks the same as one that an operator kills. The group counts the former. Without a group
the machine's own counter decides: then a kill for memory elsewhere, at the same time, is taken for one of ours. Where that counter is
missing too (before Linux 4.13), kills are never attributed to memory.
"""

import contextlib
import itertools
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_VMSTAT = Path("/proc/vmstat")
# Files in which cgroup versions 2 and 1 count the processes killed in a group.
_COUNTERS = ("memory.events", "memory.oom_control")
# Files in which cgroup versions 2 and 1 count CPU time: file, name of the field ("": the only one), units in a second.
_CPU_FILES = (("cpu.stat", "usage_usec", 1e6), ("cpuacct.usage", "", 1e9))
_PREFIX = "kperflab-build"
# The kernel may take a moment to see that the last process is gone.
_END_S = 2.0
_numbers = itertools.count(1)


def physical_memory() -> int:
    """Return the bytes of memory of this machine."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


class MemoryGroup:
    """A control group, or its replacement where none can be made. procs: its cgroup.procs file, or "".

    joins: the cgroup.procs files into which a process writes its number, one for each resource; none without a group.
    """

    def __init__(self, folder: Path | None, counting: Path | None = None) -> None:
        self.procs = str(folder / "cgroup.procs") if folder else ""
        self.joins = tuple(str(each / "cgroup.procs") for each in (folder, counting) if each)
        own = [folder / name for name in _COUNTERS] if folder else []
        self._counter = next((file for file in own if _kills(file) is not None), _VMSTAT)
        self._before = _kills(self._counter) or 0
        self._counting = counting or folder

    def members(self) -> list[int]:
        """Return the process numbers in the group; empty without a group."""
        with contextlib.suppress(OSError):
            return [int(number) for number in Path(self.procs).read_text().split()] if self.procs else []
        return []

    def cpu_seconds(self) -> float | None:
        """Return the CPU time of all processes that ever ran in the group; None where no group counts it."""
        for name, field, units in _CPU_FILES if self._counting else ():
            with contextlib.suppress(OSError):
                for line in (self._counting or Path()).joinpath(name).read_text().splitlines():
                    if not field or line.startswith(f"{field} "):
                        return int(line.removeprefix(field)) / units
        return None

    def out_of_memory(self) -> bool:
        """Return whether the kernel killed a process for memory since the group was made."""
        return (_kills(self._counter) or 0) > self._before


def _kills(file: Path) -> int | None:
    """Return the number of processes killed for memory, from a counter file; None where it has no such line."""
    with contextlib.suppress(OSError):
        for line in file.read_text().splitlines():
            name, _, number = line.partition(" ")
            if name == "oom_kill":
                return int(number)
    return None


@contextlib.contextmanager
def memory_group(limit: int, root: Path = _ROOT) -> Iterator[MemoryGroup]:
    """Yield a new group with this limit in bytes, or its replacement if none can be made."""
    group = _make(limit, root)
    # Version 1 counts CPU time in a tree of its own.
    counting = _make_counting(root, group) if group and group.parent != root else None
    try:
        yield MemoryGroup(group, counting)
    finally:
        for folder in (group, counting):
            if folder:
                _remove(folder, _END_S)


def _make(limit: int, root: Path) -> Path | None:
    # Version 2 has one tree, version 1 one for each resource.
    end_leftovers(root)
    for parent, file in ((root, "memory.max"), (root / "memory", "memory.limit_in_bytes")):
        group = parent / f"{_ours()}.{os.getpid()}.{next(_numbers)}"
        with contextlib.suppress(OSError):
            group.mkdir()
            # If it is missing, the directory is not a control group, or its parent does not enable memory limits.
            if (group / file).exists():
                (group / file).write_text(str(limit))
                return group
        _remove(group, 0)
    return None


def _make_counting(root: Path, group: Path) -> Path | None:
    folder = root / "cpuacct" / group.name
    with contextlib.suppress(OSError):
        folder.mkdir()
        if (folder / "cpuacct.usage").exists():
            return folder
    _remove(folder, 0)
    return None


def _ours() -> str:
    """Return the name prefix of control groups of builders in our PID namespace; containers have other namespaces."""
    return f"{_PREFIX}.{Path('/proc/self/ns/pid').stat().st_ino}"


def end_leftovers(root: Path = _ROOT) -> int:
    """Kill the processes in the groups of builders that were killed, and remove the groups; return the number of processes.

    A sandbox dies with its builder, except if the builder is killed while bwrap sets it up: its child would wait for ever.
    """
    count = 0
    for parent in (root, root / "memory", root / "cpuacct"):
        for group in parent.glob(f"{_ours()}.*.*"):
            if not Path("/proc", group.name.split(".")[2]).exists():
                count += _kill_all(group)
                _remove(group, _END_S)
    return count


def _kill_all(group: Path) -> int:
    """Kill every process of the group and return their number; any that remain are dying and start no others."""
    count, deadline = 0, time.monotonic() + _END_S
    with contextlib.suppress(OSError):
        # Repeat while any are left: they may have been about to fork. But processes that hang in disk I/O are not waited for.
        while (pids := (group / "cgroup.procs").read_text().split()) and time.monotonic() < deadline:
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            count = max(count, len(pids))
            time.sleep(0.02)
    return count


def _remove(group: Path, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while group.exists():
        try:
            group.rmdir()
        except OSError:  # still in use; the next build removes it
            if time.monotonic() > deadline:
                return
            time.sleep(0.02)
