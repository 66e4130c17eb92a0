# SPDX-License-Identifier: GPL-2.0-or-later
"""A made-up guest's memory: page tables, struct pages and slab caches as a kernel of x86_64 without debug options keeps them."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

IMAGE, PAGE_OFFSET, VMEMMAP = 0xFFFFFFFF80000000, 0xFFFF888000000000, 0xFFFFEA0000000000
SYSTEM_MAP = """\
ffffffff80002000 D slab_caches
ffffffff80003000 D init_top_pgt
ffffffff80007000 D page_offset_base
ffffffff80007008 D vmemmap_base
"""
_SLAB_CACHES, _TABLES = 0x2000, 0x3000
_STRUCT_PAGES, _CACHES, _NAMES = 0x200000, 0x20000, 0x30000
_LIST_AT, _APART = 104, 256
MEMORY_MIB = 128


@dataclass
class GuestMemory:
    """Memory of 128 MiB; each cache has (name, size, first page, pages of a slab). place: of the cache in a struct page."""

    caches: list[tuple[bytes, int, int, int]]
    place: int = 24
    data: bytearray = field(default_factory=lambda: bytearray(0x400000))
    reads: int = 0

    def __post_init__(self) -> None:
        self.put(0x7000, PAGE_OFFSET, VMEMMAP)
        # Four levels, the last of which is one entry of 2 MiB.
        for level in (4, 3, 2):
            index = VMEMMAP >> (12 + 9 * (level - 1)) & 511
            table = _TABLES + 0x1000 * (4 - level)
            self.put(table + 8 * index, _STRUCT_PAGES | 0x81 if level == 2 else (table + 0x1000) | 1)
        for number, (name, size, first, count) in enumerate(self.caches):
            self._add(number, name, size, first, count)
        heads = [IMAGE + _SLAB_CACHES, *(self.node(number) for number in range(len(self.caches)))]
        for here, there in zip(heads, [*heads[1:], heads[0]], strict=True):
            self.put(here - (IMAGE if here >= IMAGE else PAGE_OFFSET), there)

    def node(self, number: int) -> int:
        """Return the address of a cache's list."""
        return PAGE_OFFSET + _CACHES + number * _APART + _LIST_AT

    def put(self, address: int, *words: int) -> None:
        """Write words at a physical address."""
        struct.pack_into(f"<{len(words)}Q", self.data, address, *words)

    def read(self, address: int, size: int) -> bytes:
        """Return a piece, as libvirt would."""
        self.reads += 1
        return bytes(self.data[address : address + size]).ljust(size, b"\0")

    def _add(self, number: int, name: bytes, size: int, first: int, count: int) -> None:
        base = _CACHES + number * _APART
        struct.pack_into("<II", self.data, base + 0x18, size, size)
        self.put(base + _LIST_AT - 8, PAGE_OFFSET + _NAMES + 64 * number)
        self.data[_NAMES + 64 * number : _NAMES + 64 * number + len(name)] = name
        self.put(_STRUCT_PAGES + 64 * first + self.place, PAGE_OFFSET + base)
        for page in range(first + 1, first + count):
            self.put(_STRUCT_PAGES + 64 * page + 8, VMEMMAP + 64 * first | 1)
