# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes recorded accesses as the plugin does, for programs whose contention is known beforehand."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

from workers.microscope.contention import Contention
from workers.microscope.replay import Trace, replay
from workloads.machines import MachineModel, own_machine

LOAD, STORE, ATOMIC, NODE, BEGIN, END = range(6)
PROGRAM, THREAD, INTERRUPT = 1, 2, 3
# Functions of the made-up kernel: address → what the table of lock functions says, "" for an ordinary one.
FUNCTIONS = {
    0xFFFFFFFF81000100: "", 0xFFFFFFFF81000200: "w", 0xFFFFFFFF81000300: "m", 0xFFFFFFFF81000400: "M",
    0xFFFFFFFF81000500: "d", 0xFFFFFFFF81000600: "D", 0xFFFFFFFF81000700: "x", 0xFFFFFFFF81000800: "X",
    0xFFFFFFFF81000900: "g", 0xFFFFFFFF81000A00: "r", 0xFFFFFFFF81000B00: "R",
}  # fmt: skip
# Their nodes, which all stand below the program.
(
    PLAIN, SLOW_PATH, MUTEX_LOCK, MUTEX_UNLOCK, DOWN_READ, UP_READ, DOWN_WRITE, UP_WRITE, DOWNGRADE, READ_LOCK,
    READ_UNLOCK,
) = range(4, 4 + len(FUNCTIONS))  # fmt: skip
IN_A_THREAD, IN_AN_INTERRUPT = 4 + len(FUNCTIONS), 5 + len(FUNCTIONS)
ROLES = "".join(f"{address:x} {role}\n" for address, role in FUNCTIONS.items() if role)
HEAP = 0xFFFF888000000000

# Everything costs nothing but a transfer, so that the answers can be worked out on paper.
BARE: dict[str, float] = {
    "cycles_per_instruction": 1, "overlap": 0, "atomic_cycles": 0, "l2_cycles": 0, "shared_cycles": 0,
    "memory_cycles": 0, "transfer_cycles": 100, "far_transfer_cycles": 300, "wake_cycles": 0,
}  # fmt: skip


def bare(**numbers: float) -> MachineModel:
    return own_machine(BARE | numbers)


def varint(value: int) -> bytes:
    text = bytearray()
    while value > 0x7F:
        text.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*text, value])


class Recorder:
    """One virtual CPU's records. Times are instructions since the record before."""

    def __init__(self, cpu: int = 0, node: int = PLAIN) -> None:
        self.cpu, self.instructions, self.records = cpu, 0, 0
        self._body, self._address = bytearray(), 0
        self.begin()
        self.enter(node)

    def _record(self, op: int, after: int, rest: bytes = b"") -> None:
        self._body += bytes([op]) + varint(after) + rest
        self.instructions += after
        self.records += 1

    def begin(self) -> None:
        self._record(BEGIN, 0)

    def end(self, after: int = 0) -> None:
        self._record(END, after)

    def enter(self, node: int) -> None:
        self._record(NODE, 0, varint(node))

    def access(self, kind: int, address: int, size: int = 8, after: int = 0) -> None:
        delta = (address - self._address + (1 << 63)) % (1 << 64) - (1 << 63)
        self._address = address
        folded = delta << 1 if delta >= 0 else (-delta << 1) - 1
        self._record(kind | (size.bit_length() - 1) << 3, after, varint(folded))

    def within(self, node: int, kind: int, address: int, size: int = 8, after: int = 0) -> None:
        """An access made by another function, which then returns."""
        self.enter(node)
        self.access(kind, address, size, after)
        self.enter(PLAIN)

    def bytes(self, **changed: object) -> bytes:
        fields: dict[str, object] = {
            "magic": b"KPMA", "version": 1, "cpu": self.cpu, "whole": 1, "instructions": self.instructions,
            "records": self.records, "why": 0,
        } | changed  # fmt: skip
        return struct.pack("<4sIIIQQQ", *fields.values()) + bytes(self._body)


def call_tree() -> bytes:
    rows = [(number, 0) for number in range(4)] + [(address, PROGRAM) for address in FUNCTIONS]
    rows += [(0xFFFFFFFF81000100, THREAD), (0xFFFFFFFF81000100, INTERRUPT)]
    return struct.pack("<4sIIIQQ", b"KPMT", 1, 1, 1, 0, len(rows)) + b"".join(
        struct.pack("<4Q", function, parent, 0, 0) for function, parent in rows
    )


def write_trace(directory: Path, recorders: Sequence[Recorder]) -> Trace:
    """Write what CPUs recorded; each one's measured interval is ended."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "calls.0").write_bytes(call_tree())
    paths = tuple(directory / f"accesses.0.{recorder.cpu}" for recorder in recorders)
    for path, recorder in zip(paths, recorders, strict=True):
        recorder.end()
        path.write_bytes(recorder.bytes())
    return Trace(directory / "calls.0", paths)


class Bench:
    """Replays what CPUs recorded on a machine."""

    def __init__(self, program: Path, directory: Path) -> None:
        self.program, self.directory = program, directory

    def __call__(self, recorders: Sequence[Recorder], machine: MachineModel | None = None) -> Contention:
        return replay(self.program, write_trace(self.directory, recorders), ROLES, machine or bare())
