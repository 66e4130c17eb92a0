# SPDX-License-Identifier: GPL-2.0-or-later
"""Made-up files of the microscope: call trees of the kernel that was to boot."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from pathlib import Path

from workers.drivers.base import BootRequest
from workers.drivers.fake import Script, played
from workloads.guest.pack import read_steps

PROGRAM, THREADS, INTERRUPTS = 1, 2, 3
# Function, the row of its caller (0 to 3: the roots above; from 4: the rows given), instructions, calls.
Row = tuple[str, int, int, int]


def call_tree(rows: Sequence[tuple[int, int, int, int]], **changed: object) -> bytes:
    """Return a file of the plugin: rows of (address, parent, instructions, calls) below its four roots."""
    every = [(number, 0, 0, 0) for number in range(4)] + list(rows)
    fields: dict[str, object] = {
        "magic": b"KPMT", "version": 1, "windows": 2, "whole": 1,
        "instructions": sum(row[2] for row in every), "nodes": len(every),
    } | changed  # fmt: skip
    return struct.pack("<4sIIIQQ", *fields.values()) + b"".join(struct.pack("<4Q", *row) for row in every)


def exact(request: BootRequest, rows: Sequence[Row], *, opens: int = 100, **changed: object) -> Script:
    """Return a guest that opens files in two timed iterations after its warm-ups, and the call tree of that.

    rows: by the names of the kernel's functions. changed: fields of the file's header.
    """
    places = _functions(request.kernel.with_name("System.map"))
    tree = call_tree([(places[name], up, own, calls) for name, up, own, calls in rows], **changed)
    each = sum(row[2] for row in rows) / 2 / opens
    return Script(records=_said(request, each, opens), call_trees=(tree,))


def _said(request: BootRequest, each: float, opens: int) -> tuple[tuple[str, str, bytes], ...]:
    """One warm-up more in boots that are shifted, so ask the plan."""
    (step,) = (step for step in read_steps(request.initrd) if step.name == "open")
    words = dict(word.split("=", 1) for word in step.argv[1:])
    warmup = int(words["warmup"])
    # 16 ns of the guest's clock are one instruction.
    values = {"ns_per_open": 16 * each, "elapsed": 16e-9 * each * opens, "opens_per_second": 1e9}
    values |= {"user": 0.0, "system": 0.0, "cpu": 100.0}
    lines = [
        json.dumps({"iteration": at, "warmup": at < warmup, "values": values}) + "\n"
        for at in range(warmup + int(words["iterations"]))
    ]
    return played("soft-roce", "") + played("open", "".join(lines))


def _functions(system_map: Path) -> dict[str, int]:
    rows = (line.split() for line in system_map.read_text().splitlines())
    return {name: int(address, 16) for address, kind, name in rows if kind in "Tt"}
