# SPDX-License-Identifier: GPL-2.0-or-later
"""A System.map of a stranger's build and a guest's kallsyms: every address has a name, which may be none."""

import numpy as np

from bench.fuzz.memoryfile import MemoryFile
from workers.collect.kernelsymbols import KernelSymbols
from workers.errors import ProfileUnreadable

REFUSALS = (ProfileUnreadable,)
_ADDRESSES = np.array([0, 1, 1 << 63, 0xFFFFFFFF81000101, (1 << 64) - 1], np.uint64)


def feed(data: bytes) -> None:
    """Read what stands before the first line "%" as System.map, the rest as kallsyms."""
    system_map, _, kallsyms = data.partition(b"\n%\n")
    symbols = KernelSymbols(MemoryFile(system_map, "System.map"), kallsyms)
    names, numbers = symbols.names(_ADDRESSES)
    assert len(numbers) == len(_ADDRESSES), "an address without a name"
    assert all(len(name) <= 512 for name in names), "a name longer than any"
    symbols.starts(_ADDRESSES)
    symbols.address("_text")
    for address in _ADDRESSES.tolist():
        symbols.modules.name(address, "[ext4]")
