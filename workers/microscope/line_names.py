# SPDX-License-Identifier: GPL-2.0-or-later
"""Names cache lines and locks: by symbol and offset where they are static, else by the functions that wait for them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence

from workers.microscope.contention import LineWaits, LockWaits, WaitShare
from workers.microscope.lock_functions import is_lock_function
from workers.microscope.slab_pages import SlabPages

_DATA = re.compile(r"^([0-9a-f]{16}) [bBdDrRvV] (\S{1,500})$", re.MULTILINE)
_ANY = re.compile(r"^([0-9a-f]{16}) [a-zA-Z] ", re.MULTILINE)
# arch/x86/include/asm/page_64_types.h and pgtable_64_types.h, without KASLR.
_KERNEL, _IMAGE = 1 << 63, 0xFFFFFFFF80000000
_VMALLOC = range(0xFFFFC90000000000, 0xFFFFEA0000000000)
_LINE = 64
_MOST_NAMES = 3


class LineNames:
    """Names of one kernel's lines and locks, for waits by the nodes of one call tree."""

    def __init__(
        self, system_map: str, chain: Callable[[int], Sequence[str]], slabs: SlabPages | None = None
    ) -> None:
        """Read the symbols of data in a System.map. chain: the functions of a node, innermost first. slabs: the guest's."""
        self._slabs = slabs
        symbols = {int(digits, 16): name for digits, name in _DATA.findall(system_map)}
        # Each symbol ends where any other begins: data has no sizes in a System.map.
        starts = sorted({int(digits, 16) for digits in _ANY.findall(system_map)})
        self._starts = [start for start in starts if start >= _IMAGE]
        self._symbols = symbols
        self._chain = chain

    def line(self, line: LineWaits) -> str:
        """Return a line's name, such as "inode_hash_lock" or "slab dentry, bytes 64 to 127, of a → lockref_get, b"."""
        inside = [self._symbol(line.address)] + [
            self._symbols.get(start, "") for start in self._within(line.address, line.address + _LINE)
        ]
        names = list(dict.fromkeys(name for name in inside if name))
        return _list(names) or f"{self._region(line.address)} of {self._users(line.nodes)}"

    def lock(self, lock: LockWaits) -> str:
        """Return a lock's name, such as "inode_hash_lock" or "mutex of a → mutex_lock (slab filp, offset 72)"."""
        place = self._slabs.place(lock.address) if self._slabs else None
        where = f" (slab {place.cache}, offset {place.offset})" if place else ""
        return self._symbol(lock.address) or f"{lock.kind} of {self._users(lock.nodes)}{where}"

    def _region(self, address: int) -> str:
        if place := self._slabs.place(address) if self._slabs else None:
            last = place.offset + _LINE - 1
            more = " and the next object" if last >= place.size else ""
            return f"slab {place.cache}, bytes {place.offset} to {min(last, place.size - 1)}{more},"
        return _region(address)

    def _symbol(self, address: int) -> str:
        at = bisect_right(self._starts, address) - 1
        if at < 0 or at == len(self._starts) - 1:
            return ""
        name = self._symbols.get(self._starts[at], "")
        offset = address - self._starts[at]
        return f"{name}+{offset:#x}" if name and offset else name

    def _within(self, begin: int, end: int) -> list[int]:
        return self._starts[bisect_right(self._starts, begin) : bisect_right(self._starts, end - 1)]

    def _users(self, shares: Iterable[WaitShare]) -> str:
        return _list(list(dict.fromkeys(self._user(share.node) for share in shares))) or "nobody known"

    def _user(self, node: int) -> str:
        """The function of a node; one that is the same for every lock comes with its caller."""
        name, *above = self._chain(node) or ("",)
        return f"{above[0]} → {name}" if above and is_lock_function(name) else name


def _list(names: list[str]) -> str:
    return ", ".join(names[:_MOST_NAMES]) + (", …" if len(names) > _MOST_NAMES else "")


def _region(address: int) -> str:
    if address < _KERNEL:
        return "program memory"
    if address in _VMALLOC:
        return "stack or vmalloc memory"
    return "static data" if address >= _IMAGE else "kernel memory"
