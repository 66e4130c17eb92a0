# SPDX-License-Identifier: GPL-2.0-or-later
"""Looks at a boot: the microscope that a kernel and a workload's program need, and the call trees that it left."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from kernels.artifacts.store import Artifact
from kernels.processes.environment import minimal
from workers.collect.kernelsymbols import KernelSymbols
from workers.drivers.base import BootRequest, Microscope
from workers.errors import PluginUnusable
from workers.microscope.calltree import CallTree, ProgramSymbols, read_call_tree
from workers.microscope.functions import function_lines
from workers.microscope.plugin import compile_plugin

PROGRAM_MAP = "program.map"
_DEADLINE_S = 60


@dataclass(frozen=True, slots=True)
class Look:
    """A kernel and a program whose functions have names. program_map: what `nm` prints of the program."""

    artifact: Artifact
    program_map: str
    microscope: Microscope

    def call_trees(self, request: BootRequest) -> list[CallTree]:
        """Return the trees of a boot, one for each program that measured. Raises ProfileUnreadable."""
        kernel, program = KernelSymbols(self.artifact.system_map), ProgramSymbols(self.program_map)
        return [read_call_tree(path.read_bytes(), kernel, program) for path in request.call_trees]


def look_at(artifact: Artifact, program: Path, home: Path, directory: Path) -> Look:
    """Return what a boot's request needs, its table of functions written to the run's directory.

    program: the workload's, compiled. home: keeps the plugin. Raises PluginUnusable, ProfileUnreadable.
    """
    program_map = _program_map(program)
    (directory / PROGRAM_MAP).write_text(program_map)
    functions = directory / "functions"
    functions.write_text(function_lines(artifact.system_map.read_text(), program_map))
    functions.chmod(0o644)
    return Look(artifact, program_map, Microscope(compile_plugin(home / "programs"), functions))


def _program_map(program: Path) -> str:
    try:
        done = subprocess.run(
            ["nm", str(program)],
            capture_output=True,
            text=True,
            check=True,
            timeout=_DEADLINE_S,
            env=minimal(),
        )
    except FileNotFoundError as exc:
        raise PluginUnusable("nm is not installed; install the Debian package binutils") from exc
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as exc:
        raise PluginUnusable(f"nm cannot read the program {program.name}") from exc
    return done.stdout
