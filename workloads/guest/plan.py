# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest's plan: steps in order, and the disk it needs.

A plan is pure data. `pack.py` turns it into the second cpio that the kernel
unpacks over the initramfs; the agent there runs the steps one by one.
"""

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

GUEST_PROGRAMS = PurePosixPath("/programs")
"""Where the initramfs holds the static programs of `compile.py`, by their names."""
GUEST_FILES = PurePosixPath("/plan/files")
"""Where the agent finds the files that were packed with the plan."""
DISK_SERIAL = "kperflab0"
"""The virtio-blk serial of a plan's disk; the guest finds its device by it."""

DISK_FILE = "disk"
"""The file among GUEST_FILES that is a plan's disk where there are no disks, under the instruction clock."""

StepKind = Literal["setup", "measure", "collect"]


@dataclass(frozen=True, slots=True)
class Step:
    """One command in the guest; a step that fails ends the plan.

    deadline_s: after so many seconds the agent kills the step's process group.
    send: absolute paths sent home once the command has ended, even if it failed.
    """

    name: str
    argv: tuple[str, ...]
    deadline_s: float
    kind: StepKind
    send: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DiskShape:
    """The content of a plan's disk; equal shapes share one golden image.

    stat-tree: for each thread a directory `t<n>` holding `dirs` directories of `files` empty files.
    """

    kind: Literal["stat-tree"]
    threads: int
    dirs: int
    files: int


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps in the order they run, the shape of the disk if one is needed, and additions to the kernel's command line."""

    steps: tuple[Step, ...]
    disk: DiskShape | None = None
    cmdline: str = ""
