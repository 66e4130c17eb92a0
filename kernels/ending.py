# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a command of the sandbox failed for a reason of the lab's: one judgement for configs and for builds.

A program that was killed says nothing of the kernel, whoever killed it: it is tried again. That it was killed for memory, which trying
again does not help, is what its control group counted; cgroup.py says what decides where there is none. A refusal of memory
(the limit of each process) is known by what the refused program prints.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from kernels import kbuild
from kernels.errors import BuildKilled, BuildOutOfMemory, BuildTooLarge, DiskFull
from kernels.sandbox import Ended, Limits

Lack = Literal["", "disk", "memory", "life"]
# What people and a machine that shuts down send; crashes of a program have others.
_SENT = (signal.SIGHUP, signal.SIGINT, signal.SIGKILL, signal.SIGTERM)
# Of a process in the sandbox, as shells tell it, and of the sandbox itself.
_STATUSES = {status for number in _SENT for status in (128 + number, -number)}


def lab_lacked(ended: Ended, lines: Sequence[str]) -> Lack:
    """What the lab did not give a command that failed; "life" where somebody killed one of its programs. "": nothing."""
    lack = kbuild.ran_out_of(lines)
    if ended.stopped == "quota":
        return ""
    if ended.stopped == "disk" or lack == "disk":
        return "disk"
    if ended.stopped == "time":
        return ""
    if ended.out_of_memory or lack == "memory":
        return "memory"
    if not ended.stopped and (ended.status in _STATUSES or any(map(kbuild.tells_of_kill, lines))):
        return "life"
    return ""


def refuse_lacks(
    ended: Ended, lines: Sequence[str], limits: Limits, *, what: str, home: Path, log: Path | None = None
) -> None:
    """Raise DiskFull, BuildOutOfMemory or BuildKilled where a failure is the lab's. what: "the build" or "the config".

    Raises BuildTooLarge where the command filled more of the disk than it may, which is a submission's fault.
    """
    if ended.stopped == "quota":
        raise BuildTooLarge(
            f"{what} filled more than {limits.disk / (1 << 30):.3g} GiB of disk or half of what was free, or made more than "
            f"{limits.files} files, and was stopped",
            "\n".join(lines),
        )
    lack = lab_lacked(ended, lines)
    tail, see = "\n".join(lines), f"; see {log}" if log else ""
    if lack == "disk":
        raise DiskFull(f"the disk of {home} filled up in {what}; free some space and try again", tail)
    if lack == "memory":
        raise BuildOutOfMemory(
            f"{what} ran out of memory ({limits.memory >> 20} MiB for each process, "
            f"{limits.total_memory >> 20} MiB for all) or processes ({limits.processes}){see}",
            log=log,
            detail=tail,
        )
    if lack == "life":
        raise BuildKilled(
            f"a program of {what} was killed, and not for its memory: nothing is known of the kernel{see}",
            log=log,
            detail=tail,
        )
