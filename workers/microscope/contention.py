# SPDX-License-Identifier: GPL-2.0-or-later
"""The results of a replay: cycles of each CPU, and waits between them; and the reader of the program's own JSON.

What the program prints follows from what a guest did, so every number is checked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.errors import TraceUnreadable
from workloads.errors import OutputUnreadable
from workloads.guest.strictjson import read_object
from workloads.machines import MachineModel

_MOST, _LINE = 1 << 53, 64
_HEX = re.compile(r"[0-9a-f]{1,16}")
_KINDS = ("spinlock", "bit lock", "rwlock", "mutex", "rwsem")


@dataclass(frozen=True, slots=True)
class Cycles:
    """The cycles of one or more CPUs by cause. work: instructions; cache: the CPUs' own misses; transfer: lines that
    other CPUs had; lock: locks that other CPUs held."""

    instructions: int
    accesses: int
    work: int
    cache: int
    transfer: int
    lock: int

    @property
    def alone(self) -> int:
        """Cycles that the same accesses take where no other CPU shares any."""
        return self.work + self.cache

    @property
    def waiting(self) -> int:
        """Cycles waited for other CPUs."""
        return self.transfer + self.lock

    @property
    def total(self) -> int:
        """Return all cycles."""
        return self.alone + self.waiting


@dataclass(frozen=True, slots=True)
class NodeWaits:
    """The waits of a call tree's node for other CPUs, in cycles and number."""

    node: int
    transfer: int
    transfers: int
    lock: int
    lock_waits: int


@dataclass(frozen=True, slots=True)
class WaitShare:
    """A node's share of the waits for one line or lock."""

    node: int
    cycles: int
    count: int


@dataclass(frozen=True, slots=True)
class LineWaits:
    """A cache line that moved between CPUs. apart: transfers for bytes that conflict with no other CPU's use.

    bytes: cycles waited by accesses that begin at each byte of the line, the most first. written: the bytes that any CPU wrote, a bit each.
    """

    address: int
    cycles: int
    transfers: int
    apart: int
    cpus: int
    writers: int
    false_sharing: bool
    nodes: tuple[WaitShare, ...]
    bytes: tuple[tuple[int, int], ...] = ()
    written: int = 0


@dataclass(frozen=True, slots=True)
class LockWaits:
    """A lock that CPUs waited for. contended: acquisitions that waited."""

    address: int
    kind: str
    cycles: int
    acquisitions: int
    contended: int
    nodes: tuple[WaitShare, ...]


@dataclass(frozen=True, slots=True)
class Contention:
    """A replay. cpus, windows: of each CPU and of each measured interval; longest: cycles of the slowest CPU in each.

    nodes, lines, locks: the largest waits first. left_out: instructions of spinning, sleeping, interrupts and kernel
    threads. forced: how often the model found no CPU that could go on and let one through; 0 unless locks were
    misread.
    """

    machine: MachineModel
    total: Cycles
    cpus: tuple[Cycles, ...]
    windows: tuple[Cycles, ...]
    longest: tuple[int, ...]
    nodes: tuple[NodeWaits, ...]
    lines: tuple[LineWaits, ...]
    locks: tuple[LockWaits, ...]
    left_out: int
    lines_touched: int
    forced: int

    @property
    def slowdown(self) -> float:
        """Cycles as a multiple of those without other CPUs, 1 or more."""
        return self.total.total / self.total.alone if self.total.alone else 1.0

    @property
    def share_waiting(self) -> float:
        """Return the share of all cycles spent waiting for other CPUs, 0 to 1."""
        return self.total.waiting / self.total.total if self.total.total else 0.0

    def weights(self, nodes: int) -> NDArray[np.int64]:
        """Return cycles waited by each node of a call tree of that size, int64[nodes]; for CallTree.stacks."""
        waited = np.zeros(nodes, np.int64)
        for row in self.nodes:
            waited[row.node] = row.transfer + row.lock
        return waited


def read_contention(text: bytes, machine: MachineModel, nodes: int) -> Contention:
    """Return what the replay program printed. nodes: rows of the call tree. Raises TraceUnreadable."""
    try:
        data = read_object(text, "the replay's result")
        return _contention(data, machine, nodes)
    except OutputUnreadable as exc:
        raise TraceUnreadable(str(exc)) from exc
    except (KeyError, TypeError, ValueError, IndexError) as exc:
        raise TraceUnreadable("the replay's result is garbled: it lacks what each result has") from exc


def _contention(data: dict[str, Any], machine: MachineModel, nodes: int) -> Contention:
    if data["version"] != 1:
        raise TraceUnreadable("the replay's result is of another version of the microscope")
    return Contention(
        machine=machine,
        total=_cycles(data["total"]),
        cpus=tuple(_cycles(row) for row in data["cpus"]),
        windows=tuple(_cycles(row) for row in data["windows"]),
        longest=tuple(_count(row["longest"]) for row in data["windows"]),
        nodes=tuple(NodeWaits(_node(row[0], nodes), *map(_count, row[1:5])) for row in data["nodes"]),
        lines=tuple(_line(row, nodes) for row in data["lines"]),
        locks=tuple(_lock(row, nodes) for row in data["locks"]),
        left_out=_count(data["left_out"]),
        lines_touched=_count(data["lines_touched"]),
        forced=_count(data["forced"]),
    )


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _MOST:
        raise ValueError(value)
    return value


def _node(value: object, nodes: int) -> int:
    node = _count(value)
    if node >= nodes:
        raise ValueError(value)
    return node


def _cycles(row: dict[str, Any]) -> Cycles:
    names = ("instructions", "accesses", "work", "cache", "transfer", "lock")
    return Cycles(**{name: _count(row[name]) for name in names})


def _shares(rows: list[list[object]], nodes: int) -> tuple[WaitShare, ...]:
    return tuple(WaitShare(_node(node, nodes), _count(cycles), _count(count)) for node, cycles, count in rows)


def _bytes(rows: list[list[object]]) -> tuple[tuple[int, int], ...]:
    counts = {_node(byte, _LINE): _count(cycles) for byte, cycles in rows}
    return tuple(sorted(counts.items(), key=lambda row: -row[1]))


def _bits(value: object) -> int:
    if not isinstance(value, str) or not _HEX.fullmatch(value):
        raise ValueError(value)
    return int(value, 16)


def _line(row: dict[str, Any], nodes: int) -> LineWaits:
    return LineWaits(
        _bits(row["address"]), _count(row["cycles"]), _count(row["transfers"]), _count(row["apart"]),
        _count(row["cpus"]), _count(row["writers"]), row["false_sharing"] is True, _shares(row["nodes"], nodes),
        _bytes(row["bytes"]), _bits(row["written"]),
    )  # fmt: skip


def _lock(row: dict[str, Any], nodes: int) -> LockWaits:
    if row["kind"] not in _KINDS:
        raise ValueError(row["kind"])
    return LockWaits(
        _bits(row["address"]), row["kind"], _count(row["cycles"]), _count(row["acquisitions"]),
        _count(row["contended"]), _shares(row["nodes"], nodes),
    )  # fmt: skip
