# SPDX-License-Identifier: GPL-2.0-or-later
"""The places in the source where a profile's functions begin, as they are stored beside the profile: zlib over JSON."""

import json
import zlib
from collections.abc import Iterable, Mapping

import numpy as np

from lab.profiles.analysis.frame_names import ASIDE, normalise
from lab.profiles.analysis.frame_tree import FrameTree

MOST_BYTES = 8 << 20
# Where an exact profile's chains of calls leave the program for the kernel: arch/x86/entry/entry_64.S.
_ENTRIES = ("entry_SYSCALL_64", "asm_")


def kernel_functions(tree: FrameTree, *, exact: bool) -> set[str]:
    """Return the names in a profile that only functions of the kernel have, and none of a program.

    exact: the tree holds the program's functions, too; else only commands, which are the outermost frames.
    """
    if not exact:
        return {tree.names[at] for at in np.unique(tree.name[tree.depth > 1]).tolist()}
    entry = np.array([name.startswith(_ENTRIES) or name in ASIDE for name in tree.names], dtype=bool)
    inside = entry[tree.name]
    for node, above in enumerate(tree.parent.tolist()):
        inside[node] |= above >= 0 and inside[above]
    kernel, program = (np.unique(tree.name[flags]).tolist() for flags in (inside, ~inside))
    return {tree.names[at] for at in set(kernel) - set(program)}


def by_source_name(lines: Mapping[str, str]) -> dict[str, str]:
    """Return lines by the names of the source; parts that the compiler moved out of a function are left out."""
    by_name: dict[str, str] = {}
    for name in sorted(lines, key=lambda name: (name != normalise(name), name)):
        if ".cold" not in name:
            by_name.setdefault(normalise(name), lines[name])
    return by_name


def pack_lines(lines: Mapping[str, str]) -> bytes | None:
    """Return the stored form; nothing for no lines."""
    return zlib.compress(json.dumps(lines, sort_keys=True).encode(), 9) if lines else None


def merged_lines(stored: Iterable[bytes | memoryview | None]) -> dict[str, str]:
    """Return the lines of several stored forms; where they differ, those of the first."""
    lines: dict[str, str] = {}
    for blob in stored:
        if blob is not None:
            body = zlib.decompressobj().decompress(bytes(blob), MOST_BYTES)
            lines = json.loads(body) | lines
    return lines
