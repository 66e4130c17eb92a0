# SPDX-License-Identifier: GPL-2.0-or-later
"""Compiles the plugin for QEMU; the same sources and compiler are not compiled again."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from pathlib import Path

from kernels.processes.environment import minimal
from workers.errors import PluginUnusable
from workloads.compile import HARNESS

NATIVE = Path(__file__).parent / "native"
_COMMAND = (
    "gcc", "-shared", "-fPIC", "-fvisibility=hidden", "-O2", "-std=gnu11", "-pthread", "-Wall", "-Wextra", "-Werror",
    "-g0", "-Wl,--build-id=none",
)  # fmt: skip
_DEADLINE_S = 120


def compile_plugin(root: Path) -> Path:
    """Return the plugin's shared object, kept below root under the hash of its sources and compiler.

    QEMU's own user must be able to read it. Raises PluginUnusable.
    """
    sources = sorted(NATIVE.glob("*.c"))
    key = hashlib.sha256(
        " ".join(_COMMAND).encode() + _run(["gcc", "-v", "-E", "-x", "c", "/dev/null"]).encode()
    )
    for path in [*sources, *sorted(NATIVE.glob("*.h")), HARNESS / "mark.h"]:
        key.update(f"\0{path.name}\0".encode() + path.read_bytes())
    kept = root / key.hexdigest()[:16] / "microscope.so"
    if kept.exists():
        return kept
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root) as place:
        compiled = Path(place, "microscope.so")
        _run([*_COMMAND, "-I", str(HARNESS), "-o", str(compiled), *map(str, sources)])
        compiled.chmod(0o644)
        compiled.rename(kept)
    return kept


def _run(argv: list[str]) -> str:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_DEADLINE_S, env=minimal())
    except FileNotFoundError as exc:
        raise PluginUnusable("gcc is not installed; install the Debian packages gcc and libc6-dev") from exc
    except subprocess.TimeoutExpired as exc:
        raise PluginUnusable(f"gcc did not compile QEMU's plugin within {_DEADLINE_S} s") from exc
    if done.returncode:
        raise PluginUnusable("QEMU's plugin does not compile", done.stderr)
    return done.stderr
