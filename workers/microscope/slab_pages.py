# SPDX-License-Identifier: GPL-2.0-or-later
"""Find the slab caches of a guest's pages, by reading its memory after the measurement.

Kernels without debug information say nothing about their structures, so little is taken for granted: that in struct
kmem_cache the name stands right before the list of all caches (include/linux/slub_def.h, mm/slab.h; Linux 2.6.22 to 6.12), that
the sizes stand at 0x18 and 0x1c (SLUB since 4.17), and that a tail page has its head at 8. Where the list stands, and where
a page has its cache (24 in 6.1, 8 since 6.2), is found by trying. All of it is a guest's text and numbers: what does not
fit is not a name. Where the kernel's build wrote down its structures, caches that SLUB merged and objects that a static variable
points to are known as well.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernels.artifacts.structures import FILE as STRUCTURES
from kernels.artifacts.structures import Structures, read_structures
from workers.drivers.base import BootRequest, ReadMemory, Session
from workers.errors import ProfileUnreadable, TargetLost

# arch/x86/include/asm/page_64_types.h.
_IMAGE = 0xFFFFFFFF80000000
_PAGE_OFFSET, _PAGE_OFFSET_5 = 0xFFFF888000000000, 0xFF11000000000000
_VMEMMAP, _VMEMMAP_5 = 0xFFFFEA0000000000, 0xFFD4000000000000
_PRESENT, _HUGE, _FRAME = 1, 1 << 7, 0x000FFFFFFFFFF000
_PAGE, _STRUCT_PAGE, _PMD = 4096, 64, 2 << 20
_PAGES_OF_PMD = _PMD // _STRUCT_PAGE
_CACHE_PLACES = (24, 8)
_SIZES_AT = 0x18
_CACHES_READ, _REACH, _HUGE_OBJECT = 2000, 512, 1 << 20
_STRANGE = "the guest's memory does not hold the slab caches of a kernel as expected"
_NAME = re.compile(rb"([\w.:()/-]{1,60})\0")
_VARIABLE = re.compile(r"^([0-9a-f]{16}) [bBdDrR] (\w{1,100})$", re.MULTILINE)
_OF_KMALLOC = re.compile(r"kmalloc-(\d+)(k?)")
# A guest's memory has a hole below 4 GiB, and continues above it.
_HOLE_MIB, _SECTION_MIB = 4096, 128


@dataclass(frozen=True, slots=True)
class Place:
    """A place in an object of a slab cache. offset, size: in bytes, of the place and of the object.

    asked: the bytes of an object that the cache was created for, 0 where SLUB merged it with others or nobody knows;
    is_merged: SLUB did. pointer: the name of a static variable that points to the object.
    """

    cache: str
    offset: int
    size: int
    asked: int = 0
    pointer: str = ""
    is_merged: bool = False


@dataclass(frozen=True, slots=True)
class SlabPages:
    """The slab caches of a guest. cache: the index of each page's cache, -1 for none; head: its slab's first page.

    names, sizes: of the caches; the size is from one object to the next, in bytes. asked: as in Place, -1 for a merged cache. pointers: the names
    of static variables by where they point to.
    """

    page_offset: int
    cache: NDArray[np.int32]
    head: NDArray[np.int64]
    names: tuple[str, ...]
    sizes: tuple[int, ...]
    asked: tuple[int, ...]
    pointers: Mapping[int, str]

    def place(self, address: int) -> Place | None:
        """Return the cache and the place in its object of a kernel's address; None for memory that is not a slab."""
        page = (address - self.page_offset) // _PAGE
        if not 0 <= page < len(self.cache) or (at := int(self.cache[page])) < 0:
            return None
        offset = (address - self.page_offset - int(self.head[page]) * _PAGE) % self.sizes[at]
        pointer = self.pointers.get(address - offset, "")
        asked = self.asked[at]
        return Place(self.names[at], offset, self.sizes[at], max(asked, 0), pointer, asked < 0)


def read_slab_pages(
    read: ReadMemory, system_map: str, memory_mib: int, structures: Structures | None = None
) -> SlabPages | None:
    """Return the slab caches of a guest with so much memory; None where its memory does not look as expected.

    structures: of its kernel, if its artifact has them.

    Raises what `read` raises.
    """
    try:
        return _SlabReader(read, system_map, structures or Structures()).pages(memory_mib)
    except (ProfileUnreadable, struct.error):
        return None


class _SlabReader:
    """One reading of a guest's memory. Small pieces are read by the page, each page once."""

    def __init__(self, read: ReadMemory, system_map: str, structures: Structures) -> None:
        self._read, self._map, self._structures = read, system_map, structures
        self._known: dict[int, bytes] = {}
        self._page_offset = self._variable("page_offset_base", _PAGE_OFFSET)
        self._vmemmap = self._variable("vmemmap_base", _VMEMMAP)
        if (self._page_offset, self._vmemmap) not in (
            (_PAGE_OFFSET, _VMEMMAP),
            (_PAGE_OFFSET_5, _VMEMMAP_5),
        ):
            raise ProfileUnreadable(_STRANGE)
        self._levels = 5 if self._page_offset == _PAGE_OFFSET_5 else 4

    def pages(self, memory_mib: int) -> SlabPages:
        """Return the slab caches of a guest with so much memory. Raises ProfileUnreadable."""
        words = self._struct_pages(memory_mib)
        nodes = self._cache_nodes()
        place, offset = self._calibrated(words, nodes)
        caches = {node - offset: node for node in nodes}
        names: list[str] = []
        sizes: list[int] = []
        asked: list[int] = []
        bases: list[int] = []
        for base, node in caches.items():
            size, object_size = struct.unpack("<II", self._bytes(base + _SIZES_AT, 8))
            name = self._name(self._word(node - 8))
            if name and 8 <= object_size <= size <= _HUGE_OBJECT:
                bases.append(base)
                names.append(name)
                sizes.append(size)
                asked.append(self._asked(base, object_size))
        _check_sizes(names, sizes)
        head = self._heads(words)
        order = np.argsort(np.array(bases, np.uint64))
        known = np.array(bases, np.uint64)[order]
        owner = words[:, place // 8][head]
        at = np.minimum(np.searchsorted(known, owner), len(known) - 1)
        cache = np.where(known[at] == owner, order[at], -1).astype(np.int32)
        pointers = self._pointers()
        return SlabPages(self._page_offset, cache, head, tuple(names), tuple(sizes), tuple(asked), pointers)

    def _asked(self, base: int, object_size: int) -> int:
        """Return the size of a cache's objects, -1 if several caches were merged there, 0 where nobody knows."""
        own = self._structures.structs.get("kmem_cache")
        count = next((field for field in own.fields if field.path == "refcount"), None) if own else None
        if count is None:
            return 0
        return object_size if struct.unpack("<I", self._bytes(base + count.offset, 4)) == (1,) else -1

    def _pointers(self) -> dict[int, str]:
        """Return by address the names of the static variables that point there; names that two symbols share are left out."""
        symbols = Counter(name for _, name in _VARIABLE.findall(self._map))
        names: dict[int, str] = {}
        for digits, name in _VARIABLE.findall(self._map):
            if name in self._structures.pointers and symbols[name] == 1 and (at := int(digits, 16)) >= _IMAGE:
                names.setdefault(self._word(at), name)
        return names

    def _struct_pages(self, memory_mib: int) -> NDArray[np.uint64]:
        """Return the first four words of each page's struct page, zeros for pages that are not there."""
        sections = -(-(memory_mib + (_HOLE_MIB if memory_mib >= 2048 else 0)) // _SECTION_MIB)
        words = np.zeros((sections * _PAGES_OF_PMD, 4), np.uint64)
        for section in range(sections):
            if (frame := self._huge_frame(self._vmemmap + section * _PMD)) is not None:
                piece = np.frombuffer(self._read(frame, _PMD), "<u8").reshape(-1, _STRUCT_PAGE // 8)
                words[section * _PAGES_OF_PMD : (section + 1) * _PAGES_OF_PMD] = piece[:, :4]
        return words

    def _huge_frame(self, address: int) -> int | None:
        """Return where 2 MiB of the kernel's virtual memory are; None if they are not mapped in one piece."""
        table = self._symbol("init_top_pgt") - _IMAGE
        for level in range(self._levels, 1, -1):
            index = address >> (12 + 9 * (level - 1)) & 511
            (entry,) = struct.unpack("<Q", self._physical(table + 8 * index, 8))
            if not entry & _PRESENT or (level == 2) != bool(entry & _HUGE):
                return None
            table = entry & _FRAME
        return table

    def _cache_nodes(self) -> list[int]:
        """Return the addresses of the list heads in all struct kmem_cache."""
        head = self._symbol("slab_caches")
        nodes: list[int] = []
        node = self._word(head)
        while node != head and len(nodes) < _CACHES_READ:
            nodes.append(node)
            node = self._word(node)
        return nodes

    def _calibrated(self, words: NDArray[np.uint64], nodes: list[int]) -> tuple[int, int]:
        """Return the offsets of the cache in a struct page, and of the list in a cache."""
        best = (0, 0, 0)
        for place in _CACHE_PLACES:
            owners = np.unique(words[:, place // 8])
            offsets: Counter[int] = Counter()
            for node in nodes:
                first, last = np.searchsorted(owners, np.array([node - _REACH, node], np.uint64))
                offsets.update(node - int(owner) for owner in owners[first:last])
            # The previous cache lies further off, and the first has no previous one.
            candidates = [(count, place, offset) for offset, count in offsets.items()]
            best = max([best, *candidates], key=lambda candidate: (candidate[0], -candidate[2]))
        if best[0] < len(nodes) // 4 or not nodes:
            raise ProfileUnreadable(_STRANGE)
        return best[1], best[2]

    def _heads(self, words: NDArray[np.uint64]) -> NDArray[np.int64]:
        pages = np.arange(len(words))
        above = words[:, 1]
        heads = ((above & ~np.uint64(1)) - np.uint64(self._vmemmap)) // np.uint64(_STRUCT_PAGE)
        tails = (above & np.uint64(1) == 1) & (heads < len(words))
        return np.where(tails, np.where(tails, heads, 0).astype(np.int64), pages)

    def _name(self, pointer: int) -> str:
        name = _NAME.match(self._bytes(pointer, 64))
        return name[1].decode() if name else ""

    def _symbol(self, name: str) -> int:
        match = re.search(rf"^([0-9a-f]{{16}}) \w {name}$", self._map, re.MULTILINE)
        if not match:
            raise ProfileUnreadable(_STRANGE)
        return int(match[1], 16)

    def _variable(self, name: str, otherwise: int) -> int:
        try:
            return self._word(self._symbol(name))
        except ProfileUnreadable:
            return otherwise

    def _word(self, address: int) -> int:
        (word,) = struct.unpack("<Q", self._bytes(address, 8))
        return int(word)

    def _bytes(self, address: int, size: int) -> bytes:
        """Read at a virtual address of the kernel's image or of all memory."""
        if _IMAGE <= address < 1 << 64:
            return self._physical(address - _IMAGE, size)
        if self._page_offset <= address < self._page_offset + (1 << 40):
            return self._physical(address - self._page_offset, size)
        raise ProfileUnreadable(_STRANGE)

    def _physical(self, address: int, size: int) -> bytes:
        page, offset = address & ~(_PAGE - 1), address & (_PAGE - 1)
        if page not in self._known:
            self._known[page] = self._read(page, _PAGE)
        more = offset + size - _PAGE
        return self._known[page][offset : offset + size] + (
            self._physical(page + _PAGE, more) if more > 0 else b""
        )


def _check_sizes(names: list[str], sizes: list[int]) -> None:
    """Raise ProfileUnreadable unless the sizes are where they are looked for: the names of some caches tell their sizes."""
    pairs = [(int(name[1]) << (10 if name[2] else 0), size) for name, size in _kmalloc(names, sizes)]
    if not pairs or any(wanted != size for wanted, size in pairs):
        raise ProfileUnreadable(_STRANGE)


def _kmalloc(names: list[str], sizes: list[int]) -> list[tuple[re.Match[str], int]]:
    return [
        (name, size) for text, size in zip(names, sizes, strict=True) if (name := _OF_KMALLOC.fullmatch(text))
    ]


def slab_pages(session: Session, request: BootRequest) -> SlabPages | None:
    """Return the slab caches of a guest that is still there; None where they cannot be read: they only give names.

    Raises TargetLost for a guest that could not be stopped or resumed: its kernel is not to blame for what it does later.
    """
    with session.memory() as read:
        if read is None:
            return None
        system_map = request.kernel.with_name("System.map").read_text()
        structures = read_structures(request.kernel.with_name(STRUCTURES))
        try:
            return read_slab_pages(read, system_map, request.machine.memory_mib, structures)
        except TargetLost:
            return None
