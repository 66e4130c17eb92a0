# SPDX-License-Identifier: GPL-2.0-or-later
"""The sources of the compiler front (front/), and the recipe that follows from them."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

SOURCES = Path(__file__).parent / "front"


def source_files(folder: Path = SOURCES) -> list[Path]:
    """Return all files that the front is compiled from, sorted."""
    return sorted([*folder.glob("*.cc"), *folder.glob("*.h")])


@cache
def recipe_of_sources(folder: Path = SOURCES) -> str:
    """Return the recipe of today's front: it differs as soon as a file does, so nobody has to remember to raise a number."""
    digest = hashlib.sha256()
    for path in source_files(folder):
        digest.update(f"\0{path.name}\0".encode() + path.read_bytes())
    return f"front {digest.hexdigest()[:16]}"
