# SPDX-License-Identifier: GPL-2.0-or-later
"""Compiles the microscope's native parts, each once for the same sources, flags and compiler."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kernels.errors import DiskFull
from kernels.files.scratch import place_synced
from kernels.processes.environment import minimal
from workers.errors import WorkersError

_DEADLINE_S = 120


@dataclass(frozen=True, slots=True)
class Product:
    """The product of a compiler run. what: names it in messages; language: as the compiler's -x takes it; error: raised where the compiler fails."""

    what: str
    file: str
    mode: int
    compiler: str
    language: str
    flags: tuple[str, ...]
    sources: tuple[Path, ...]
    headers: tuple[Path, ...]
    error: type[WorkersError]


def compile_once(product: Product, root: Path) -> Path:
    """Return the compiled file, kept below root under the hash of what it was made from. Raises the product's error, DiskFull."""
    kept = root / _key(product) / product.file
    if kept.exists():
        return kept
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root) as place:
        compiled = Path(place, product.file)
        _run(product, [*product.flags, "-o", str(compiled), *(str(path) for path in product.sources)])
        compiled.chmod(product.mode)
        place_synced(compiled, kept)
    return kept


def _key(product: Product) -> str:
    key = hashlib.sha256("\0".join([product.compiler, *product.flags, _version(product)]).encode())
    for path in [*product.sources, *product.headers]:
        key.update(f"\0{path.name}\0".encode() + path.read_bytes())
    return key.hexdigest()[:16]


@cache
def _version(product: Product) -> str:
    """Return the compiler's version; read once a process, since a worker boots often."""
    return _run(product, ["-v", "-E", "-x", product.language, "/dev/null"])


def _run(product: Product, arguments: list[str]) -> str:
    compiler = product.compiler
    try:
        done = subprocess.run(
            [compiler, *arguments], capture_output=True, text=True, timeout=_DEADLINE_S, env=minimal()
        )
    except FileNotFoundError as exc:
        raise product.error(
            f"{compiler} is not installed; install the Debian packages {compiler} and libc6-dev"
        ) from exc
    except subprocess.TimeoutExpired as exc:
        raise product.error(f"{compiler} did not compile {product.what} within {_DEADLINE_S} s") from exc
    if "No space left on device" in done.stderr:
        raise DiskFull(f"the disk filled up while {product.what} was compiled; free some space", done.stderr)
    if done.returncode:
        raise product.error(f"{product.what} does not compile", done.stderr)
    return done.stderr
