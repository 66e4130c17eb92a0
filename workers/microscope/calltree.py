# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads the call trees that the plugin wrote (native/report.c): callers and callees, numbers of calls, and the instructions of each.

Everything in such a file follows from what a guest executed, so nothing in it is believed: sizes are checked against the
file, parents come before their children, and addresses serve only to look up names.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lab.profiles.analysis.frame_tree import depths
from workers.collect.kernelsymbols import KernelSymbols
from workers.errors import ProfileUnreadable

_HEADER = struct.Struct("<4sIIIQQ")
_ROW = np.dtype([("function", "<u8"), ("parent", "<u8"), ("instructions", "<u8"), ("calls", "<u8")])
_MAGIC, _VERSION = b"KPMT", 1
# native/plugin.c: MOST_NODES.
_MOST_NODES = 1 << 20
# native/tree.h: enum root. The root of a program's functions has no name, and needs none.
_ROOTS = ("[unknown]", "", "[kernel threads]", "[interrupts]")
NAMELESS = len(_ROOTS)
_KERNEL = 1 << 63
_PROGRAMS = 1 << 47
# arch/x86/entry/vdso/vma.c puts the vDSO right below or above the stack.
_STACK = 0x7FF000000000
# Deeper than the frames of any stack of 16 KiB, and than the calls of our programs.
_DEEPEST = 2048


@dataclass(frozen=True, slots=True)
class CallTree:
    """Every chain of calls in the measured windows. names: of each node's function; parent: of each node, -1 for a root.

    instructions: executed in the function itself, int64[n]. calls: to it from its parent, int64[n]. windows: how many
    were measured.
    """

    names: tuple[str, ...]
    parent: NDArray[np.int64]
    instructions: NDArray[np.int64]
    calls: NDArray[np.int64]
    windows: int

    def stacks(self, weights: NDArray[np.int64]) -> Iterator[tuple[tuple[str, ...], int]]:
        """Yield each chain of names, outermost first, whose innermost node has a weight, with the weight."""
        chains: list[tuple[str, ...]] = []
        for name, parent, weight in zip(self.names, self.parent.tolist(), weights.tolist(), strict=True):
            above = chains[parent] if parent >= 0 else ()
            chains.append((*above, name) if name else above)
            if weight:
                yield chains[-1], weight


class ProgramSymbols:
    """Functions of a program by address, from what `nm` printed of it."""

    def __init__(self, program_map: str) -> None:
        """Read lines "ADDRESS TYPE NAME"; symbols other than functions are skipped."""
        rows = (line.split() for line in program_map.splitlines())
        functions = sorted((int(row[0], 16), row[2]) for row in rows if len(row) == 3 and row[1] in "tTwW")
        self._addresses = [address for address, _ in functions]
        self._names = [name for _, name in functions]

    def name(self, address: int) -> str:
        """Return the function an address is in; "[vdso]" or "[unknown]" where it is in none of the program."""
        if address >= _STACK:
            return "[vdso]"
        at = bisect_right(self._addresses, address) - 1
        return self._names[at] if at >= 0 else "[unknown]"


def read_call_tree(data: bytes, kernel: KernelSymbols, program: ProgramSymbols) -> CallTree:
    """Return the tree in a file of the plugin.

    Raises ProfileUnreadable for a file that is cut short or garbled, that a boot did not finish, or that had to leave
    something out.
    """
    windows, rows = _rows(data)
    roots, parents = len(_ROOTS), rows["parent"]
    if parents[:roots].any() or (parents[roots:] >= np.arange(roots, len(rows), dtype=np.uint64)).any():
        raise ProfileUnreadable("the exact profile is garbled: a function stands before its caller")
    parent = parents.astype(np.int64)
    parent[:roots] = -1
    if (depths(parent) > _DEEPEST).any():
        raise ProfileUnreadable(f"the exact profile is garbled: calls nest deeper than {_DEEPEST}")
    return CallTree(
        (*_ROOTS, *_names(rows["function"][roots:], kernel, program)),
        parent,
        rows["instructions"].astype(np.int64),
        rows["calls"].astype(np.int64),
        windows,
    )


def _rows(data: bytes) -> tuple[int, NDArray[np.void]]:
    if len(data) < _HEADER.size:
        raise ProfileUnreadable("the exact profile is cut short")
    magic, version, windows, whole, instructions, nodes = _HEADER.unpack_from(data)
    if (magic, version) != (_MAGIC, _VERSION):
        raise ProfileUnreadable("the exact profile was not written by this version of the microscope")
    if not whole:
        raise ProfileUnreadable(
            "the exact profile is not whole: the guest ended inside a measured interval, or called too many "
            "different chains of functions"
        )
    if not len(_ROOTS) <= nodes <= _MOST_NODES or len(data) != _HEADER.size + nodes * _ROW.itemsize:
        raise ProfileUnreadable("the exact profile is cut short")
    rows = np.frombuffer(data, _ROW, offset=_HEADER.size)
    most = np.uint64(1 << 53)
    if (rows["instructions"] >= most).any() or (rows["calls"] >= most).any() or instructions >= most:
        raise ProfileUnreadable("the exact profile is garbled: its counts are larger than any boot's")
    if rows["calls"].sum(dtype=np.float64) >= most or rows["instructions"].sum(dtype=np.float64) >= most:
        raise ProfileUnreadable("the exact profile is garbled: its counts are larger than any boot's")
    if int(rows["instructions"].sum()) != instructions:
        raise ProfileUnreadable("the exact profile is garbled: its functions do not add up to its total")
    return windows, rows


def _names(functions: NDArray[np.uint64], kernel: KernelSymbols, program: ProgramSymbols) -> Iterator[str]:
    known, places = kernel.names(functions)
    for address, place in zip(functions.tolist(), places.tolist(), strict=True):
        if address < _PROGRAMS:
            yield program.name(address)
        elif known[place]:
            yield known[place]
        else:
            yield kernel.modules.at(address) if address >= _KERNEL else "[unknown]"
