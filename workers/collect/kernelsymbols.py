# SPDX-License-Identifier: GPL-2.0-or-later
"""Addresses of a kernel → names, by its System.map: what `perf script --kallsyms` would print.

Of several names at one address the last one listed is taken, as perf does (symbols__fixup_end gives all others a size
of 0, in tools/perf/util/symbol.c of Linux 6.1); names that only mark the bounds of a section are left out.
"""

import re
from bisect import bisect_right
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from kernels.artifacts.elf_sections import Readable
from workers.errors import ProfileUnreadable

Addresses = NDArray[np.uint64]

# A distribution's kernel with everything built in: 10 MiB, 200,000 lines.
_MOST_BYTES = 64 << 20
_MOST_LINES = 1 << 20
_DIGITS = 16
_HEX = re.compile(rb"[0-9a-f]{16}")
# "ffffffff81000000 T _text": 16 digits, a blank, the type, a blank, the name.
_NAME_AT = _DIGITS + 3
_TEXT = b"TtWw"
# include/linux/kallsyms.h: KSYM_NAME_LEN.
_LONGEST_NAME = 512
# The linker script's names for the bounds of code: no functions.
_BOUND = re.compile(r"_+\w*text(_start|_end|_begin)?")
# "ffffffffc0201000 t bh_lookup\t[bh_lookup_module]"
_OF_A_MODULE = re.compile(rb"^([0-9a-f]{16}) [tTwW] (\S{1,500})\t\[(\w{1,100})\]$", re.MULTILINE | re.ASCII)
_MOST_OF_MODULES = 1 << 18
_LOWEST = np.uint64(1 << 63)
_NIBBLES = np.full(256, 255, np.uint8)
_NIBBLES[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16, dtype=np.uint8)


class KernelSymbols:
    """Functions of one kernel by address. modules: those of the modules it had loaded."""

    def __init__(self, system_map: Readable, kallsyms: bytes = b"") -> None:
        """Read a System.map, and of the guest's own kallsyms the lines about modules.

        Raises ProfileUnreadable when there is no System.map, or it is larger than any kernel's.
        """
        self.modules = ModuleSymbols(kallsyms)
        try:
            if system_map.stat().st_size > _MOST_BYTES:
                raise ProfileUnreadable(f"the kernel's System.map is larger than {_MOST_BYTES >> 20} MiB")
            self._text = system_map.read_bytes()
        except OSError as exc:
            raise ProfileUnreadable(f"the kernel's {system_map.name} cannot be read: {exc.strerror}") from exc
        if self._text.count(b"\n") > _MOST_LINES:
            raise ProfileUnreadable(f"the kernel's System.map has more than {_MOST_LINES} lines")
        lines, addresses = _text_symbols(self._text)
        if not len(lines):
            raise ProfileUnreadable(f"{system_map.name} names no function of a kernel")
        order = np.argsort(addresses, kind="stable")
        self._lines = lines[order]
        self._addresses = addresses[order]
        self._end = np.uint64(self.address("_end") or (1 << 64) - 1)

    def address(self, name: str) -> int | None:
        """Return a symbol's address; None if there is none of that name."""
        at = self._text.find(b" " + name.encode() + b"\n")
        if at < _DIGITS + 2:
            return None
        digits = self._text[at - _DIGITS - 2 : at - 2]
        return int(digits, 16) if _HEX.fullmatch(digits) else None

    def names(self, addresses: Addresses) -> tuple[list[str], NDArray[np.int64]]:
        """Return names of functions, and for each address the index of its function; the name is "" for an address in none."""
        last = np.searchsorted(self._addresses, addresses, side="right") - 1
        last[addresses >= self._end] = -1
        places, inverse = np.unique(last, return_inverse=True)
        return [self._best(place) if place >= 0 else "" for place in places.tolist()], inverse

    def starts(self, addresses: Addresses) -> NDArray[np.bool_]:
        """Return which addresses are the first of a function."""
        positions = np.searchsorted(self._addresses, addresses)
        positions[positions == len(self._addresses)] = 0
        starts: NDArray[np.bool_] = self._addresses[positions] == addresses
        return starts

    def _best(self, last: int) -> str:
        """Return the function at the address of symbol `last`, the last symbol there; "" if only bounds are there."""
        first = int(np.searchsorted(self._addresses, self._addresses[last]))
        for line in reversed(self._lines[first : last + 1].tolist()):
            end = self._text.find(b"\n", line)
            end = min(end if end >= 0 else len(self._text), line + _NAME_AT + _LONGEST_NAME)
            name = self._text[line + _NAME_AT : end].decode(errors="replace")
            if not _BOUND.fullmatch(name):
                return name
        return ""


class ModuleSymbols:
    """Functions of modules by address, as the guest lists them: a guest may have loaded them anywhere."""

    def __init__(self, kallsyms: bytes) -> None:
        """Read lines of /proc/kallsyms; lines other than those of a module's function are skipped."""
        lines = islice(_OF_A_MODULE.finditer(kallsyms), _MOST_OF_MODULES)
        symbols = sorted(
            (int(line[1], 16), line[3].decode(), line[2].decode(errors="replace")) for line in lines
        )
        self._addresses = [address for address, _, _ in symbols]
        self._named = [(module, name) for _, module, name in symbols]

    def name(self, address: int, frame: str) -> str:
        """Return the function at an address in the module that a frame names ("[ext4]"); the frame itself if there is none.

        The name includes the module, since the kernel may have a function of that name, too.
        """
        place = bisect_right(self._addresses, address) - 1
        if place < 0:
            return frame
        module, _ = self._named[place]
        return self.at(address) if frame.replace("-", "_") == f"[{module}]" else frame

    def at(self, address: int) -> str:
        """Return the last function that begins at an address or before, with its module; "[unknown]" before the first."""
        place = bisect_right(self._addresses, address) - 1
        if place < 0:
            return "[unknown]"
        module, name = self._named[place]
        return f"{name} [{module}]"


def _text_symbols(text: bytes) -> tuple[NDArray[np.int64], Addresses]:
    """Offsets of the lines that name code of the kernel's half of memory, and the addresses in them."""
    data = np.frombuffer(text, np.uint8)
    starts = np.concatenate(([0], np.flatnonzero(data == ord("\n")) + 1))
    starts = starts[starts + _NAME_AT < len(data)]
    starts = starts[np.isin(data[starts + _DIGITS + 1], np.frombuffer(_TEXT, np.uint8))]
    digits = _NIBBLES[data[starts[:, None] + np.arange(_DIGITS)]]
    whole = (digits < 16).all(axis=1) & (data[starts + _DIGITS] == ord(" "))
    starts, digits = starts[whole], digits[whole].astype(np.uint64)
    addresses = np.zeros(len(starts), np.uint64)
    for column in range(_DIGITS):
        addresses = addresses << np.uint64(4) | digits[:, column]
    high = addresses >= _LOWEST
    return starts[high], addresses[high]
