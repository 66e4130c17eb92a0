# SPDX-License-Identifier: GPL-2.0-or-later
"""Names of what a boot creates on the host, and how to find what a killed worker left behind.

A boot's sockets, overlays and domain all carry one id: the worker's pid, its start time and a random part.
So the name of anything found later identifies its owner, even if the owner wrote nothing down.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kernels.processes.stats import read_process

Alive = Callable[[int, int], bool]
"""Whether the process of this pid and start time still runs."""


@dataclass(frozen=True, slots=True)
class BootId:
    """The identity of a boot and its process: unique on this host until it reboots."""

    pid: int
    started: int
    token: str

    def __str__(self) -> str:
        return f"{self.pid}-{self.started}-{self.token}"

    @classmethod
    def new(cls) -> BootId:
        """Return an id for one boot by this process."""
        return cls(os.getpid(), process_started(os.getpid()), secrets.token_hex(4))

    @classmethod
    def read(cls, text: str) -> BootId:
        """Return the id that a name ends with. Raises ValueError if it is none of ours."""
        match = re.search(r"(\d+)-(\d+)-([0-9a-f]{8})$", text)
        if not match:
            raise ValueError(f'"{text}" does not end with a boot\'s id')
        return cls(int(match[1]), int(match[2]), match[3])


@dataclass(frozen=True, slots=True)
class Traces:
    """The places where boots of one state root leave files."""

    home: Path

    @property
    def prefix(self) -> str:
        """Return the prefix of this home's domain names, which differs between homes on one host."""
        return f"kperflab-{hashlib.sha256(bytes(self.home.resolve())).hexdigest()[:8]}-"

    @property
    def sockets(self) -> Path:
        """Return a short path, since a socket's path has at most 107 bytes."""
        base = (
            Path("/run")
            if os.geteuid() == 0
            else Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir())
        )
        return base / self.prefix.rstrip("-")

    @property
    def overlays(self) -> Path:
        """Return the overlays' folder, on disk beside the golden images."""
        return self.home / "overlays"

    def remove(self, boot: BootId) -> None:
        """Remove the files that a boot left, if there are any."""
        shutil.rmtree(self.sockets / str(boot), ignore_errors=True)
        shutil.rmtree(self.overlays / str(boot), ignore_errors=True)

    def boots(self) -> set[BootId]:
        """Return the boots that left files."""
        names = [
            path.name for where in (self.sockets, self.overlays) if where.is_dir() for path in where.iterdir()
        ]
        return {BootId.read(name) for name in names if re.fullmatch(r"\d+-\d+-[0-9a-f]{8}", name)}


def process_started(pid: int) -> int:
    """Return when a process began, in clock ticks since boot; 0 if there is none."""
    process = read_process(pid)
    return process.started if process else 0


def process_alive(pid: int, started: int) -> bool:
    """Return whether this very process runs, and not a later one of the same number."""
    return process_started(pid) == started
