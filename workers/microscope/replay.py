# SPDX-License-Identifier: GPL-2.0-or-later
"""Replays what several virtual CPUs recorded as if all had run at once (native/replay/, docs/contention.md)."""

from __future__ import annotations

import struct
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from kernels.processes.environment import minimal
from workers.errors import ReplayFailed, ReplayTooSlow, TraceUnreadable
from workers.microscope.contention import Contention, read_contention
from workloads.compile_once import Product, compile_once
from workloads.machines import MachineModel

SOURCES = Path(__file__).parent / "native" / "replay"
FLAGS = ("-std=c++17", "-O2", "-flto=2", "-Wall", "-Wextra", "-Werror", "-g0", "-Wl,--build-id=none")
_DEADLINE_S = 600
_MEMORY_BYTES = 2 << 30
_CALLS_HEADER = struct.Struct("<4sIIIQQ")
_REFUSED = "replay: "


@dataclass(frozen=True, slots=True)
class Trace:
    """A boot's recording of one program (accesses.Recording): the call tree, and a file for each CPU, in order."""

    calls: Path
    accesses: tuple[Path, ...]

    @property
    def nodes(self) -> int:
        """Return how many rows its call tree says it has. Raises TraceUnreadable."""
        try:
            with self.calls.open("rb") as file:
                return int(_CALLS_HEADER.unpack(file.read(_CALLS_HEADER.size))[5])
        except (OSError, struct.error) as exc:
            raise TraceUnreadable("the call tree of the recorded accesses is missing or cut short") from exc

    def first(self, cpus: int) -> Trace:
        """Return the recording of the first virtual CPUs. Raises TraceUnreadable if there are fewer."""
        if not 1 <= cpus <= len(self.accesses):
            raise TraceUnreadable(f"{len(self.accesses)} virtual CPUs recorded accesses, not {cpus}")
        return Trace(self.calls, self.accesses[:cpus])


def compile_replay(root: Path) -> Path:
    """Return the replay program, kept below root under the hash of its sources and compiler. Raises ReplayFailed."""
    product = Product(
        what="the replay program",
        file="replay",
        flags=FLAGS,
        files=tuple(sorted([*SOURCES.glob("*.cc"), *SOURCES.glob("*.h")])),
        compiler="g++",
        error=ReplayFailed,
    )
    return compile_once(product, root)


def replay(program: Path, trace: Trace, roles: str, machine: MachineModel) -> Contention:
    """Return what the trace costs on a machine. roles: of lock_function_lines.

    Raises TraceUnreadable for files that are cut short, garbled or too large, ReplayTooSlow, ReplayFailed.
    """
    nodes = trace.nodes
    with tempfile.TemporaryDirectory() as place:
        roles_file, machine_file = Path(place, "roles"), Path(place, "machine")
        roles_file.write_text(roles)
        machine_file.write_text(machine.numbers.lines())
        printed = _run(program, trace, roles_file, machine_file)
    return read_contention(printed, machine, nodes)


def _run(program: Path, trace: Trace, roles: Path, machine: Path) -> bytes:
    command = [str(program), str(trace.calls), str(roles), str(machine), *map(str, trace.accesses)]
    try:
        done = subprocess.run(
            ["prlimit", f"--as={_MEMORY_BYTES}", "--core=0", "--", *command],
            capture_output=True,
            timeout=_DEADLINE_S,
            env=minimal(),
        )
    except FileNotFoundError as exc:
        raise ReplayFailed("prlimit is not installed; install the Debian package util-linux") from exc
    except subprocess.TimeoutExpired as exc:
        raise ReplayTooSlow(f"the replay did not end within {_DEADLINE_S} s") from exc
    said = done.stderr.decode(errors="replace").strip()
    if done.returncode == 1 and said.startswith(_REFUSED):
        raise TraceUnreadable(f"the recorded accesses cannot be replayed: {said[len(_REFUSED) :]}")
    if done.returncode:
        raise ReplayFailed(f"the replay program ended with {done.returncode}", said)
    return done.stdout
