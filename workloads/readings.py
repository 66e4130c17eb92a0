# SPDX-License-Identifier: GPL-2.0-or-later
"""Turn a guest's records into samples: the output of the programs, the files that were sent, the steps that failed."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from workloads.errors import OutputUnreadable, WorkloadFailed
from workloads.guest.records import Record
from workloads.guest.strictjson import read_object

Object = dict[str, Any]
# A metric of workload.toml, perhaps followed by the member of a list.
_METRIC = re.compile(r"[\w.+-]{1,100}", re.ASCII)
_OWN = {"iteration", "warmup", "values", "recorded", "window"}
# Lines that perf prints around a program's own output.
_OF_PERF = re.compile(r"\[ perf record|Events (?:en|dis)abled|Couldn't synthesize bpf| ?\]$")
_LONGEST_COMPLAINT = 1000
MOST_LINES = 10_000
"""The limit of one step's output: a plan has at most some thousand iterations."""
RECORDER_MARK = ":"
"""Separates a measured step's name from the recorder of a further pass, whose iterations are not results of the run."""


@dataclass(frozen=True, slots=True)
class Iteration:
    """One execution within a run: each metric's value, in the metric's unit."""

    index: int
    warmup: bool
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Readings:
    """The results of one run.

    iterations: empty unless the run was a measured one.
    extras: facts of the run other than its samples; JSON. Values that changed from
        iteration to iteration are lists.
    line: the mail's own line, for the iteration with the median of the line's metric.
    """

    iterations: tuple[Iteration, ...]
    extras: Mapping[str, Any] = field(default_factory=dict)
    line: str = ""


def raise_failed_step(records: Sequence[Record]) -> None:
    """Raise WorkloadFailed if a step failed, with the last line of its stderr, and all of it in `detail`."""
    for record in records:
        if record.kind != "exit":
            continue
        ending = read_object(record.payload, f"the exit record of {record.name}")
        status, signal, timed_out = (ending.get(name) or 0 for name in ("status", "signal", "timed_out"))
        if not (status or signal or timed_out):
            continue
        if timed_out:
            wall_s = ending.get("wall_s", 0)
            how = (
                f"did not end within its deadline ({wall_s if isinstance(wall_s, int | float) else 0:.0f} s)"
            )
        elif signal:
            how = f"was ended by signal {_number(signal)}"
        else:
            how = f"ended with status {_number(status)}"
        stderr = joined(records, "err", record.name).decode(errors="replace")
        said = complaint(stderr)
        raise WorkloadFailed(f'step "{record.name}" {how}' + (f": {said}" if said else ""), stderr)


def _number(value: Any) -> str:
    return str(value) if type(value) is int else "unknown"


def complaint(stderr: str) -> str:
    """Return a program's own last line, ignoring lines that perf prints around it; "" if there is none."""
    lines = [line for line in stderr.splitlines() if line.strip() and not _OF_PERF.match(line)]
    last = lines[-1][:_LONGEST_COMPLAINT] if lines else ""
    return "".join(sign if sign.isprintable() or sign == "\t" else "?" for sign in last)


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
    """Return the output of one step, one JSON object a line. Raises OutputUnreadable."""
    lines = joined(records, "out", step).splitlines()
    if len(lines) > MOST_LINES:
        raise OutputUnreadable(f'step "{step}" printed {len(lines)} lines, at most {MOST_LINES} are read')
    return [read_object(line, f'what step "{step}" printed') for line in lines]


def files_of(records: Sequence[Record]) -> dict[str, bytes]:
    """The files that the guest sent, by their paths in the guest."""
    parts: dict[str, list[bytes]] = {}
    for record in records:
        if record.kind == "file":
            parts.setdefault(record.name, []).append(record.payload)
    return {name: b"".join(pieces) for name, pieces in parts.items()}


def iterations_of(objects: Sequence[Object]) -> tuple[Iteration, ...]:
    """Return the objects as iterations. Raises OutputUnreadable for values that are not finite numbers."""
    return tuple(_iteration(item) for item in objects)


def _iteration(item: Object) -> Iteration:
    index, warmup, values = (item.get(name) for name in ("iteration", "warmup", "values"))
    if type(index) is not int or not isinstance(warmup, bool | int) or not isinstance(values, Mapping):
        raise OutputUnreadable(
            "an iteration is not in our form: it lacks its number, its values or what it is for"
        )
    for name, value in values.items():
        if not _METRIC.fullmatch(name) or isinstance(value, bool) or not isinstance(value, int | float):
            raise OutputUnreadable(f"iteration {index}: {name[:80]!a} is not a metric with a number")
        if not math.isfinite(value):
            raise OutputUnreadable(f"iteration {index}: {name} is not a finite number")
    return Iteration(index, bool(warmup), {name: float(value) for name, value in values.items()})


def extras_of(objects: Sequence[Object]) -> dict[str, Any]:
    """Return the programs' other fields: one value if it is always the same, else a list."""
    names = dict.fromkeys(name for item in objects for name in item if name not in _OWN)
    extras: dict[str, Any] = {}
    for name in names:
        said = [item.get(name) for item in objects]
        extras[name] = said[0] if all(value == said[0] for value in said) else said
    return extras
