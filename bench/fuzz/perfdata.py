# SPDX-License-Identifier: GPL-2.0-or-later
"""A perf.data against a kernel's symbols: what is read can be packed, and unpacks as the same."""

import random
import struct

from bench.fuzz.memoryfile import MemoryFile
from lab.profiles.analysis.frame_tree import pack, unpack
from workers.collect.perfdata import ExpectedKernel, read_perf_data, read_waits
from workers.errors import ProfileUnreadable

REFUSALS = (ProfileUnreadable,)
_MAP = b"ffffffff81000000 T _text\nffffffff81000100 T do_open\nffffffff81000200 t do_walk\nffffffff81000300 T _end\n"
_HUGE = (
    0,
    1,
    7,
    8,
    0xFFFF,
    1 << 31,
    (1 << 32) - 1,
    1 << 53,
    1 << 63,
    (1 << 64) - 8,
    (1 << 64) - 1,
    0xFFFFFFFF81000101,
)


def feed(data: bytes) -> None:
    """Read samples or, by the first byte, waits."""
    kernel = ExpectedKernel(MemoryFile(_MAP, "System.map"))
    kind = data[0] % 3 if data else 0
    file = MemoryFile(data[1:], "perf.data")
    if kind:
        profile = read_waits(file, kernel, "lock" if kind == 1 else "off-cpu")
    else:
        profile = read_perf_data(file, kernel)
    assert unpack(pack(profile.tree)).samples == profile.samples, "a profile unpacks as another one"
    assert 0 <= profile.lost < 1 << 63, "a count of losses that no database takes"


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Write wild numbers over whole words, which all fields are made of."""
    changed = bytearray(data.ljust(16, b"\0"))
    for _ in range(rng.randrange(1, 6)):
        at = 1 + 8 * rng.randrange((len(changed) - 1) // 8)
        if rng.random() < 0.5:
            struct.pack_into("<Q", changed, at, rng.choice(_HUGE))
        else:
            struct.pack_into(
                "<IHH",
                changed,
                at,
                rng.choice((1, 3, 7, 9, 10, 13, 17)),
                rng.choice((0, 1, 2)),
                rng.choice((8, 16, 24, 40, 64)),
            )
    return bytes(changed)
