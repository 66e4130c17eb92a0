# SPDX-License-Identifier: GPL-2.0-or-later
"""A vmlinux or module of a stranger's build: its release, its build id, the hash of its code."""

import random
import struct

from bench.fuzz.memoryfile import MemoryFile
from kernels.artifacts.elf import code_hash, read_build_id, read_release
from kernels.errors import ArtifactCorrupt

REFUSALS = (ArtifactCorrupt,)
_HUGE = (0, 1, 64, 0xFFFF, 1 << 31, (1 << 32) - 1, 1 << 53, 1 << 63, (1 << 64) - 1)


def feed(data: bytes) -> None:
    """Read the file as a kernel, and as its own module."""
    file = MemoryFile(data, "vmlinux")
    assert len(code_hash(file, [file], "6.1.0-kabc")) == 64, "a hash of another length"
    assert len(read_build_id(file)) <= 64, "a build id longer than any"
    read_release(file)


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Write wild numbers over fields of the headers."""
    changed = bytearray(data.ljust(64, b"\0"))
    for _ in range(rng.randrange(1, 5)):
        width, code = rng.choice(((2, "<H"), (4, "<I"), (8, "<Q")))
        at = rng.randrange(0, len(changed) - width, 2)
        struct.pack_into(code, changed, at, rng.choice(_HUGE) & ((1 << 8 * width) - 1))
    return bytes(changed)
