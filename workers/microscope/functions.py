# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel's functions as the plugin wants them: one line each, with what is special about it.

The special ones are where control changes hands without a call: interrupts, system calls, new threads. Their names are
those of arch/x86/entry/entry_64.S and arch/x86/include/asm/idtentry.h, Linux 5.8 and later.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from workers.errors import ProfileUnreadable

# Kinds, as in native/functions.h.
_PLAIN, _INTERRUPT, _EXCEPTION, _SYSCALL, _THREAD, _SWITCH, _MOVES_RETURN = "fixstcr"

_SYMBOL = re.compile(r"^([0-9a-f]{16}) ([tTwW]) (\S+)$", re.MULTILINE)
_KERNEL = 1 << 63
# A cold part that the compiler moved out of a function is reached by a jump, and belongs to the function.
_COLD = re.compile(r"(.+)\.cold(?:\.\d+)?")
_INTERRUPTS = re.compile(r"asm_sysvec_\w+")
_EXCEPTIONS = re.compile(r"asm_exc_\w+")
_KINDS = {
    "entry_SYSCALL_64": _SYSCALL,
    "ret_from_fork": _THREAD,
    "ret_from_fork_asm": _THREAD,
    "__switch_to_asm": _SWITCH,
    "error_entry": _MOVES_RETURN,
    "paranoid_entry": _MOVES_RETURN,
}
# Labels within entry_SYSCALL_64.
_OF_THE_SYSCALL = re.compile(r"entry_SYSCALL_64_\w+|syscall_return_via_sysret|entry_SYSRETQ_\w+")
# Tables of one stub a vector, by their number (arch/x86/include/asm/irq_vectors.h); a stub's size follows from it.
_STUBS = {"irq_entries_start": 256 - 0x20, "spurious_entries_start": 256 - 0xEC}
_STUB_SIZES = (16, 8)


def function_lines(system_map: str, program_map: str = "") -> str:
    """Return the table for the plugin: a line a function, "ADDRESS KIND START", by rising address.

    system_map: of the kernel. program_map: of the workload's program, as `nm` prints it. Raises ProfileUnreadable for a
    kernel without entry_SYSCALL_64, whose system calls could not be recognised.
    """
    kernel = {address: names for address, names in _symbols(system_map).items() if address >= _KERNEL}
    by_name = {name: address for address, names in kernel.items() for name in names}
    if "entry_SYSCALL_64" not in by_name:
        raise ProfileUnreadable(
            "the kernel's System.map does not name entry_SYSCALL_64: is it one of x86_64?"
        )
    program = sorted(address for address in _symbols(program_map) if address < _KERNEL)
    lines = [f"{address:x} {_PLAIN} {address:x}" for address in program]
    addresses = sorted(kernel)
    for address, following in pairwise([*addresses, addresses[-1] + 1]):
        lines += _lines(address, following, kernel[address], by_name)
    return "\n".join(lines) + "\n"


def _symbols(text: str) -> dict[int, list[str]]:
    symbols: dict[int, list[str]] = {}
    for digits, _, name in _SYMBOL.findall(text):
        symbols.setdefault(int(digits, 16), []).append(name)
    return symbols


def _lines(address: int, following: int, names: list[str], by_name: dict[str, int]) -> Iterator[str]:
    for name in names:
        if name in _STUBS:
            size = next((size for size in _STUB_SIZES if size * _STUBS[name] <= following - address), 0)
            stubs = range(address, following, size) if size else [address]
            yield from (f"{stub:x} {_INTERRUPT} {address:x}" for stub in stubs)
            return
    kind = next((kind for name in names if (kind := _kind(name)) != _PLAIN), _PLAIN)
    yield f"{address:x} {kind} {_start(address, names, by_name):x}"


def _kind(name: str) -> str:
    if _INTERRUPTS.fullmatch(name):
        return _INTERRUPT
    if _EXCEPTIONS.fullmatch(name):
        return _EXCEPTION
    return _KINDS.get(name, _PLAIN)


def _start(address: int, names: list[str], by_name: dict[str, int]) -> int:
    """Return the first address of the function that a symbol is a part of; its own if it is part of none."""
    for name in names:
        if cold := _COLD.fullmatch(name):
            return by_name.get(cold[1], address)
        if _OF_THE_SYSCALL.fullmatch(name):
            return by_name["entry_SYSCALL_64"]
    return address
