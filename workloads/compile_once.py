# SPDX-License-Identifier: GPL-2.0-or-later
"""Compiles our own C and C++: each product once for the same sources, flags and compiler."""

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from workloads.environment import minimal
from workloads.errors import GuestNotMade, ProgramDiskFull

_DEADLINE_S = 120


@dataclass(frozen=True, slots=True)
class Product:
    """The product of a compiler run. what: names it in messages; files: sources and headers; libraries: flags behind the sources.

    error: raised where the compiler fails.
    """

    what: str
    file: str
    flags: tuple[str, ...]
    files: tuple[Path, ...]
    libraries: tuple[str, ...] = ()
    compiler: str = "gcc"
    error: type[Exception] = GuestNotMade


def compile_once(product: Product, root: Path) -> Path:
    """Return the compiled file, kept below root under the hash of what it was made from. Raises the product's error, ProgramDiskFull."""
    kept = root / _key(product) / product.file
    if kept.exists():
        return kept
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root) as place:
        compiled = Path(place, product.file)
        sources = [str(path) for path in product.files if path.suffix != ".h"]
        command = [product.compiler, *product.flags, "-o", str(compiled), *sources, *product.libraries]
        _run(command, product.what, product.error)
        # Another user may load it: QEMU's own its plugin.
        compiled.chmod(0o755)
        with compiled.open("rb") as file:  # a power cut would leave an empty one
            os.fsync(file.fileno())
        compiled.rename(kept)
    return kept


def _key(product: Product) -> str:
    command = (product.compiler, *product.flags, *product.libraries)
    version = _version(product.compiler, product.error)  # type: ignore[arg-type] # a class has a hash
    key = hashlib.sha256("\0".join([*command, version]).encode())
    for path in product.files:
        key.update(f"\0{path.name}\0".encode() + path.read_bytes())
    return key.hexdigest()[:16]


@cache
def _version(compiler: str, error: type[Exception]) -> str:
    """Return the compiler's version; read once a process, since a worker boots often."""
    return _run([compiler, "-v", "-E", "-x", "c", "/dev/null"], compiler, error)


def _run(command: Sequence[str], what: str, error: type[Exception]) -> str:
    compiler = command[0]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_DEADLINE_S, env=minimal())
    except FileNotFoundError as exc:
        raise error(
            f"{compiler} is not installed; install the Debian packages {compiler} and libc6-dev"
        ) from exc
    except subprocess.TimeoutExpired as exc:
        raise error(f"{compiler} did not compile {what} within {_DEADLINE_S} s") from exc
    if "No space left on device" in done.stderr:
        raise ProgramDiskFull(f"the disk filled up while {what} was compiled; free some space", done.stderr)
    if done.returncode:
        first = next((line for line in done.stderr.splitlines() if "error:" in line), "no error line")
        raise error(f"{what} does not compile: {first}", done.stderr)
    return done.stderr
