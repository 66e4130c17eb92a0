# SPDX-License-Identifier: GPL-2.0-or-later
"""Count the objects of a base build that a variant will compile again.

kbuild keeps the command and the inputs of each object in `.<name>.o.cmd`: an object is compiled again when one of
its inputs differs. The files were written by a build, which is not trusted: they are only searched for words, links are not
followed, and anything but a regular file is not read.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from kernels.sandbox.command import SOURCE

# The longest seen in 6.12 has 190 kB.
_CMD_BYTES = 1 << 20
_MOST_OBJECTS = 100_000
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def changed_inputs(paths: Iterable[str], config: str, base_config: str) -> frozenset[bytes]:
    """Return the words by which `.cmd` files name changed files and changed config symbols."""
    symbols = {_symbol(line) for line in set(config.splitlines()) ^ set(base_config.splitlines())} - {""}
    files = {os.fsencode(f"{SOURCE}/{path}") for path in paths}
    return frozenset(files | {f"include/config/{name})".encode() for name in symbols})


def steps_over_layer(objects: Path, inputs: frozenset[bytes]) -> int:
    """Return how many objects below a directory name one of the inputs."""
    if not inputs:
        return 0
    return sum(not inputs.isdisjoint(text.split()) for text in _commands(objects))


def _commands(objects: Path) -> Iterator[bytes]:
    seen = 0
    for _, _, files, folder in os.fwalk(objects):
        for name in files:
            if name.startswith(".") and name.endswith(".o.cmd"):
                seen += 1
                if seen > _MOST_OBJECTS:
                    return
                yield _text(name, folder)


def _text(name: str, folder: int) -> bytes:
    try:
        descriptor = os.open(name, _OPEN, dir_fd=folder)
    except OSError:
        return b""
    with os.fdopen(descriptor, "rb") as file:
        return file.read(_CMD_BYTES) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""


def _symbol(line: str) -> str:
    """Return the name in "CONFIG_X=y" or "# CONFIG_X is not set", "" in any other line."""
    name, _, _ = line.removeprefix("# ").partition("=")
    return name.removesuffix(" is not set").removeprefix("CONFIG_") if "CONFIG_" in name else ""
