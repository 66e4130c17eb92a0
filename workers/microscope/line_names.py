# SPDX-License-Identifier: GPL-2.0-or-later
"""Names cache lines and locks: by field where it is known, by symbol and offset where they are static, else by the functions that wait for them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from kernels.artifacts.structures import Structures
from workers.microscope.contention import LineWaits, LockWaits, WaitShare
from workers.microscope.field_names import FieldNames
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
        self,
        system_map: str,
        chain: Callable[[int], Sequence[str]],
        slabs: SlabPages | None = None,
        structures: Structures | None = None,
    ) -> None:
        """Read the symbols of data in a System.map. chain: the functions of a node, innermost first. slabs: the guest's.

        structures: of the kernel, if its artifact has them.
        """
        self._slabs = slabs
        self._fields = FieldNames(structures)
        symbols = {int(digits, 16): name for digits, name in _DATA.findall(system_map)}
        # Each symbol ends where the next one begins: a System.map has no sizes.
        starts = sorted({int(digits, 16) for digits in _ANY.findall(system_map)})
        self._starts = [start for start in starts if start >= _IMAGE]
        self._symbols = symbols
        self._common = {name for name, count in Counter(symbols.values()).items() if count > 1}
        self._chain = chain

    def line(self, line: LineWaits) -> str:
        """Return a line's name: "inode_hash_lock", "d_lockref in struct dentry, slab dentry, bytes 64 to 127, of a → lockref_get, b"."""
        starts = [self._start(line.address), *self._within(line.address, line.address + _LINE)]
        names = list(dict.fromkeys(name for start in starts if (name := self._static(start, line))))
        return _list(names) or f"{self._region(line)} of {self._users(line.nodes)}"

    def lock(self, lock: LockWaits) -> str:
        """Return a lock's name, such as "inode_hash_lock" or "mutex of a → mutex_lock (slab filp, offset 72)"."""
        place = self._slabs.place(lock.address) if self._slabs else None
        field = self._fields.at(place) if place else ""
        where = f" (slab {place.cache}, offset {place.offset}{field and ': '}{field})" if place else ""
        return self._static_lock(lock.address) or f"{lock.kind} of {self._users(lock.nodes)}{where}"

    def _region(self, line: LineWaits) -> str:
        if place := self._slabs.place(line.address) if self._slabs else None:
            last = place.offset + _LINE - 1
            more = " and the next object" if last >= place.size else ""
            field = self._fields.in_line(place, line)
            slab = f"slab {place.cache}, bytes {place.offset} to {min(last, place.size - 1)}{more},"
            return f"{field}, {slab}" if field else slab
        return _region(line.address)

    def _start(self, address: int) -> int:
        """Return where the symbol of an address begins, -1 for none."""
        at = bisect_right(self._starts, address) - 1
        return -1 if at < 0 or at == len(self._starts) - 1 else self._starts[at]

    def _static(self, start: int, line: LineWaits) -> str:
        """Return the name of a symbol as a part of a line, with its fields where it is a structure."""
        if not (name := self._symbols.get(start, "")):
            return ""
        end = next(iter(self._within(start, line.address + _LINE)), line.address + _LINE)
        known = "" if name in self._common else self._fields.in_variable(name, line, start, end)
        return _shown(name, line.address - start, known)

    def _static_lock(self, address: int) -> str:
        """Return the name of a static lock, "" for another, with its field where it is a part of a structure."""
        start = self._start(address)
        if not (name := self._symbols.get(start, "")):
            return ""
        known = "" if name in self._common else self._fields.at_variable(name, address - start)
        return _shown(name, address - start, known)

    def _within(self, begin: int, end: int) -> list[int]:
        return self._starts[bisect_right(self._starts, begin) : bisect_right(self._starts, end - 1)]

    def _users(self, shares: Iterable[WaitShare]) -> str:
        return _list(list(dict.fromkeys(self._user(share.node) for share in shares))) or "nobody known"

    def _user(self, node: int) -> str:
        """Return the function of a node; a lock function, the same for every lock, comes with its caller."""
        name, *above = self._chain(node) or ("",)
        return f"{above[0]} → {name}" if above and is_lock_function(name) else name


def _shown(name: str, offset: int, fields: str) -> str:
    return (f"{name}+{offset:#x}" if offset > 0 else name) + (f" ({fields})" if fields else "")


def _list(names: list[str]) -> str:
    return ", ".join(names[:_MOST_NAMES]) + (", …" if len(names) > _MOST_NAMES else "")


def _region(address: int) -> str:
    if address < _KERNEL:
        return "program memory"
    if address in _VMALLOC:
        return "stack or vmalloc memory"
    return "static data" if address >= _IMAGE else "kernel memory"
