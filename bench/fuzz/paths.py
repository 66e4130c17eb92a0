# SPDX-License-Identifier: GPL-2.0-or-later
"""Paths of a stranger's tree, one a line: what is taken is written below one folder, and nothing beside it."""

import os
import tempfile
from pathlib import Path

from kernels.errors import TreeUnreadable
from kernels.files.beneath import Beneath
from kernels.files.paths import check_paths

REFUSALS = (TreeUnreadable,)
MOST = 50
# In memory: a disk makes ten times fewer tries.
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None


def feed(data: bytes) -> None:
    """Check the paths together, and write each: the first byte of a line says whether as a file, a link or a folder."""
    lines = data.split(b"\n")[:MOST]
    paths = [os.fsdecode(line[1:]) for line in lines]
    try:
        check_paths(paths)
    finally:
        _write([(line[:1], path) for line, path in zip(lines, paths, strict=True)])


def _write(entries: list[tuple[bytes, str]]) -> None:
    """Write even what the check refuses: the second line of defence must hold alone."""
    with tempfile.TemporaryDirectory(prefix="kperflab-fuzz-", dir=MEMORY) as place:
        outside, top = Path(place), Path(place) / "outer" / "top"
        top.mkdir(parents=True)
        with Beneath(top) as beneath:
            for kind, path in entries:
                try:
                    if kind == b"l":
                        beneath.link(path, os.fsencode(outside))
                    elif kind == b"d":
                        beneath.folder(path)
                    elif kind == b"r":
                        beneath.remove(path)
                    elif kind == b"m":
                        beneath.mark_absent(path)
                    else:
                        beneath.write(path, b"", 0o644)
                except TreeUnreadable:
                    continue
        assert [path.name for path in outside.iterdir()] == ["outer"], "something was written outside"
        assert [path.name for path in (outside / "outer").iterdir()] == ["top"], (
            "something was written beside the folder"
        )
