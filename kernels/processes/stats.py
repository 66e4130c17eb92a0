# SPDX-License-Identifier: GPL-2.0-or-later
"""Processes as /proc describes them: proc(5), /proc/PID/stat."""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

_TICKS, _PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Process:
    """One process. cpu_s: its own CPU seconds; waited_s: those of the children that it has waited for; memory: resident bytes.

    state: a letter, "R" for running or ready to run. started: in clock ticks since boot; tells it from a later process of its number.
    """

    pid: int
    state: str
    parent: int
    cpu_s: float
    waited_s: float
    started: int
    memory: int


def read_process(pid: int) -> Process | None:
    """Return a process; None where there is none of that number."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return None
    # The second field is the program's name in brackets and may hold blanks and brackets itself.
    state, *fields = text.rpartition(")")[2].split()
    parent, own, children = int(fields[0]), sum(map(int, fields[10:12])), sum(map(int, fields[12:14]))
    memory = int(fields[20]) * _PAGE
    return Process(pid, state, parent, own / _TICKS, children / _TICKS, int(fields[18]), memory)


def family_of(pid: int) -> list[Process]:
    """Return a process and its descendants, as far as they are still there."""
    children: dict[int, list[Process]] = defaultdict(list)
    family = []
    for path in Path("/proc").iterdir():
        if path.name.isdecimal() and (process := read_process(int(path.name))):
            children[process.parent].append(process)
            family += [process] if process.pid == pid else []
    for process in family:
        family += children[process.pid]
    return family
