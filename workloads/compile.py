# SPDX-License-Identifier: GPL-2.0-or-later
"""Compiles the workloads' programs: static, so that they run in a guest without libraries."""

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from workloads.catalog import PROGRAMS, Workload, load_catalog
from workloads.environment import minimal
from workloads.errors import GuestNotMade, ProgramDiskFull

HARNESS = Path(__file__).parent / "harness"
_COMMAND = (
    "gcc", "-static", "-O2", "-std=gnu11", "-pthread", "-Wall", "-Wextra", "-Werror",
    # The same bytes wherever the checkout lies.
    "-g0", "-Wl,--build-id=none",
)  # fmt: skip
_DEADLINE_S = 120


def compile_programs(root: Path, workloads: Iterable[Workload] | None = None) -> dict[str, Path]:
    """Return static programs by name, as they are called in the guest's /programs.

    root: the folder that keeps them, under the hash of their sources and compiler; an unchanged
    program is not compiled again. Raises GuestNotMade.
    """
    chosen = load_catalog().values() if workloads is None else workloads
    compiler = _compiler()
    programs = {}
    for workload in chosen:
        name, folder = workload.definition.program, PROGRAMS / workload.name
        programs[name] = _compiled(root, name, folder, compiler)
    return programs


@cache
def _compiler() -> str:
    """Return gcc's version; read once a process, since a worker boots often."""
    return _run(["gcc", "-v", "-E", "-x", "c", "/dev/null"], "gcc")


def _compiled(root: Path, name: str, folder: Path, compiler: str) -> Path:
    # A -module.c is a kernel module: it is built against each variant's tree.
    own = [path for path in sorted(folder.glob("*.c")) if not path.stem.endswith("-module")]
    sources = [*sorted(HARNESS.glob("*.c")), *own]
    headers = [*sorted(HARNESS.glob("*.h")), *sorted(folder.glob("*.h"))]
    key = hashlib.sha256("\0".join([compiler, *_COMMAND]).encode())
    for path in [*sources, *headers]:
        key.update(f"\0{path.name}\0".encode() + path.read_bytes())
    kept = root / key.hexdigest()[:16] / name
    if kept.exists():
        return kept
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root) as place:
        binary = Path(place, name)
        _run([*_COMMAND, "-I", str(HARNESS), "-o", str(binary), *map(str, sources), "-lm"], name)
        with binary.open("rb") as file:  # a power cut would leave an empty one
            os.fsync(file.fileno())
        binary.rename(kept)
    return kept


def _run(argv: list[str], name: str) -> str:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_DEADLINE_S, env=minimal())
    except FileNotFoundError as exc:
        raise GuestNotMade("gcc is not installed; install the Debian packages gcc and libc6-dev") from exc
    except subprocess.TimeoutExpired as exc:
        raise GuestNotMade(f"gcc did not end within {_DEADLINE_S} s on {name}") from exc
    if "No space left on device" in done.stderr:
        raise ProgramDiskFull(f"no room to compile {name}: the disk is full", done.stderr)
    if done.returncode:
        first = next((line for line in done.stderr.splitlines() if "error:" in line), "no error line")
        raise GuestNotMade(f"{name} does not compile: {first}", done.stderr)
    return done.stderr
