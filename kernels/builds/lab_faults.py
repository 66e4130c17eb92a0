# SPDX-License-Identifier: GPL-2.0-or-later
"""Decide whether a command of the sandbox, for a config or a build, failed through a fault of the lab.

Only facts that the lab measured itself count: the free space of its own disk, kills for memory that the control group counted, CPU time
that others took, and a killed process outside the sandbox, where the command cannot reach. A build controls its output, its exit status
and the signals among its own processes: a makefile can print "No space left on device" and end its make by SIGKILL.
So if somebody kills a program inside the sandbox by hand, that counts as the kernel's failure; its log says that it was killed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from kernels.errors import BuildInterrupted, BuildOutOfMemory, BuildTooLarge, DiskFull
from kernels.sandbox.command import Ended, Limits

Lack = Literal["", "disk", "cpu", "memory", "life"]


def lab_lacked(ended: Ended) -> Lack:
    """Return the resource that a failed command lacked through the lab's fault; "life": a process around it was killed. "": none."""
    if ended.stopped == "quota":
        return ""
    if ended.stopped == "disk" or ended.disk_short:
        return "disk"
    if ended.stopped == "time":
        return "cpu" if ended.starved else ""
    if ended.stopped:
        return ""
    if ended.out_of_memory:
        return "memory"
    return "life" if ended.killed else ""


def refuse_lacks(
    ended: Ended, lines: Sequence[str], limits: Limits, *, what: str, home: Path, log: Path | None = None
) -> None:
    """Raise DiskFull, BuildOutOfMemory or BuildInterrupted if a failure is the lab's fault. what: "the build" or "the config".

    lines: the last output, kept as the error's detail and not judged.
    Raises BuildTooLarge where the command filled more of the disk than it may, which is a submission's fault.
    """
    tail, see = "\n".join(lines), f"; see {log}" if log else ""
    if ended.stopped == "quota":
        raise BuildTooLarge(
            f"{what} filled more than {limits.disk / (1 << 30):.3g} GiB of disk or half of what was free, or made more than "
            f"{limits.files} files, and was stopped",
            tail,
        )
    lack = lab_lacked(ended)
    if lack == "disk":
        raise DiskFull(f"the disk of {home} filled up in {what}; free some space and try again", tail)
    if lack == "cpu":
        raise BuildInterrupted(
            f"{what} was stopped after {limits.seconds / 60:.0f} minutes, in which the host gave it less than half of the CPU time "
            f"that it was ready to use; try again when the host is less busy{see}",
            log=log,
            detail=tail,
        )
    if lack == "memory":
        raise BuildOutOfMemory(
            f"{what} ran out of memory ({limits.total_memory >> 20} MiB for all its processes){see}",
            log=log,
            detail=tail,
        )
    if lack == "life":
        raise BuildInterrupted(
            f"the sandbox of {what} was killed from outside, and not for its memory: this says nothing about the kernel{see}",
            log=log,
            detail=tail,
        )
