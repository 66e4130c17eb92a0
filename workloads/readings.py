# SPDX-License-Identifier: GPL-2.0-or-later
"""From a guest's records to samples: what the programs printed, what files came, what failed."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from workloads.errors import OutputUnreadable, WorkloadFailed
from workloads.guest.records import Record

Object = dict[str, Any]
_OWN = {"iteration", "warmup", "values", "recorded", "window"}
# What perf says around a program, and after the program's own last word.
_OF_PERF = re.compile(r"\[ perf record|Events (?:en|dis)abled|Couldn't synthesize bpf| ?\]$")
RECORDER_MARK = ":"
"""Between a measured step's name and the recorder it runs under once more: those iterations are not the run's."""


@dataclass(frozen=True, slots=True)
class Iteration:
    """One execution within a run: each metric's value, in the metric's unit."""

    index: int
    warmup: bool
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Readings:
    """What one run gave.

    iterations: empty unless the run was a measured one.
    extras: what belongs to the run beside its samples; JSON. Values that changed from
        iteration to iteration are lists.
    line: the mail's own line, of the iteration with the median of the metric it speaks of.
    """

    iterations: tuple[Iteration, ...]
    extras: Mapping[str, Any] = field(default_factory=dict)
    line: str = ""


def raise_failed_step(records: Sequence[Record]) -> None:
    """Raise WorkloadFailed if a step did not end well: its stderr's last line, and all of it in `detail`."""
    for record in records:
        if record.kind != "exit":
            continue
        ending = _json(record.payload, f"the exit record of {record.name}")
        if not (ending.get("status") or ending.get("signal") or ending.get("timed_out")):
            continue
        if ending.get("timed_out"):
            how = f"did not end within its deadline ({ending.get('wall_s', 0):.0f} s)"
        elif ending.get("signal"):
            how = f"was ended by signal {ending['signal']}"
        else:
            how = f"ended with status {ending['status']}"
        stderr = joined(records, "err", record.name).decode(errors="replace")
        said = complaint(stderr)
        raise WorkloadFailed(f'step "{record.name}" {how}' + (f": {said}" if said else ""), stderr)


def complaint(stderr: str) -> str:
    """A program's own last line, without what perf says around it; "" if it said nothing."""
    lines = [line for line in stderr.splitlines() if line.strip() and not _OF_PERF.match(line)]
    return lines[-1] if lines else ""


def joined(records: Sequence[Record], kind: str, name: str) -> bytes:
    """All payload of one kind and name, in order."""
    return b"".join(record.payload for record in records if (record.kind, record.name) == (kind, name))


def objects_of(records: Sequence[Record], steps: Sequence[str]) -> list[Object]:
    """The JSON objects that the measuring steps printed, in order. Raises OutputUnreadable."""
    printed = []
    for name in dict.fromkeys(record.name for record in records if record.kind == "out"):
        # A repeated step is called walk-0, walk-1, ...
        if RECORDER_MARK in name or (name not in steps and name.rpartition("-")[0] not in steps):
            continue
        printed += json_lines(records, name)
    return printed


def json_lines(records: Sequence[Record], step: str) -> list[Object]:
    """What one step printed, an object a line. Raises OutputUnreadable."""
    lines = joined(records, "out", step).splitlines()
    return [_json(line, f'what step "{step}" printed') for line in lines]


def files_of(records: Sequence[Record]) -> dict[str, bytes]:
    """The files that came home, by their paths in the guest."""
    names = dict.fromkeys(record.name for record in records if record.kind == "file")
    return {name: joined(records, "file", name) for name in names}


def iterations_of(objects: Sequence[Object]) -> tuple[Iteration, ...]:
    """The objects as iterations. Raises OutputUnreadable for what is not a finite number."""
    found = []
    for item in objects:
        try:
            values = {str(name): float(value) for name, value in item["values"].items()}
            found.append(Iteration(int(item["iteration"]), bool(item["warmup"]), values))
        except (KeyError, TypeError, ValueError, AttributeError) as exc:
            raise OutputUnreadable(f"an iteration is not in our form: {exc!r}", json.dumps(item)) from exc
        if bad := [name for name, value in values.items() if not math.isfinite(value)]:
            raise OutputUnreadable(f"iteration {item['iteration']}: {bad[0]} is not a finite number")
    return tuple(found)


def extras_of(objects: Sequence[Object]) -> dict[str, Any]:
    """What the programs said beside their values; one value if it never changed, else a list."""
    names = dict.fromkeys(name for item in objects for name in item if name not in _OWN)
    extras: dict[str, Any] = {}
    for name in names:
        said = [item.get(name) for item in objects]
        extras[name] = said[0] if all(one == said[0] for one in said) else said
    return extras


def _json(text: bytes, what: str) -> Object:
    try:
        value = json.loads(text)
    except ValueError as exc:
        raise OutputUnreadable(f"{what} is not JSON: {exc}", text.decode(errors="replace")) from exc
    if not isinstance(value, dict):
        raise OutputUnreadable(f"{what} is not a JSON object", text.decode(errors="replace"))
    return value
