# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs a shell script or a C program inside the build sandbox, for tests of what it can reach."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from kernels.sandbox.command import Ended, Layer, Limits, SandboxPlace, run

ENVIRONMENT = {"PATH": "/usr/bin:/usr/sbin", "LC_ALL": "C", "HOME": "/tmp"}
LIMITS = Limits(seconds=30, memory=2 << 30, cores=2)


@dataclass(frozen=True, slots=True)
class Seen:
    """The exit status of a script, and its output."""

    ended: Ended
    lines: list[str]

    @property
    def text(self) -> str:
        """The output in one piece."""
        return "\n".join(self.lines)


def new_place(folder: Path) -> SandboxPlace:
    """Return a place of empty directories below `folder` which everybody may write to."""
    for name in ("source", "objects", "out", "work"):
        (folder / name).mkdir()
        (folder / name).chmod(0o777)
    return SandboxPlace(Layer(folder / "source"), Layer(folder / "objects"), folder / "out", folder / "work")


def attempt(place: SandboxPlace, script: str, *arguments: str, limits: Limits = LIMITS) -> Seen:
    """Run a shell script in the sandbox; $1 and so on are the arguments."""
    lines: list[str] = []
    ended = run(["sh", "-c", script, "sh", *arguments], place, ENVIRONMENT, limits, on_line=lines.append)
    return Seen(ended, lines)


def own(seconds: int) -> str:
    """Return so many seconds for `sleep` as nobody else says them: other test runs of this machine have the same scripts."""
    return f"{seconds}.{os.getpid()}"


def alive(pattern: str) -> bool:
    """Return whether a process of the host matches."""
    return (
        subprocess.run(["pgrep", "-f", pattern], capture_output=True, check=False, timeout=60).returncode == 0
    )


def gone(seconds: int, patience: float = 60.0) -> bool:
    """Return whether no `sleep` of so many seconds that are our own is left, after a while for the kernel to end it."""
    end = time.monotonic() + patience
    while alive(f"^sleep {own(seconds)}$"):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True
