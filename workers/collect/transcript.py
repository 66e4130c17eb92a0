# SPDX-License-Identifier: GPL-2.0-or-later
"""Check a guest's records against its plan as they arrive, and write recordings of perf to files.

The plan says which steps there are, in which order, and which files each sends. Nothing else is taken: a guest cannot
make the lab keep, count or read what nobody asked for. Raises RecordUnexpected, which blames the guest.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from lab.runs import guest_limits
from workloads.errors import RecordUnexpected
from workloads.guest.greeting import Farewell, read_bye
from workloads.guest.plan import Plan, Step
from workloads.guest.records import Record
from workloads.passes import RECORDERS, Kind

MOST_RECORDS = guest_limits.RECORDS
PRINTED_BYTES = guest_limits.PRINTED_BYTES
FILE_BYTES = guest_limits.FILE_BYTES
RECORDING_BYTES = guest_limits.RECORDING_BYTES


def recording_name(kind: Kind) -> str:
    """Return the name of a recorder's file in a run's directory."""
    return "perf.data" if kind == "cpu" else f"perf.{kind}.data"


_KINDS: dict[str, Kind] = {recorder.data: recorder.kind for recorder in RECORDERS.values()}


class Transcript:
    """The records of one run, as far as they have come. farewell: how the guest left, once it has."""

    def __init__(self, plan: Plan, directory: Path) -> None:
        """directory: of the run, for recordings; what an earlier attempt left there is replaced."""
        self.farewell = Farewell()
        self._steps = {step.name: place for place, step in enumerate(plan.steps)}
        self._plan = plan
        self._directory = directory
        self._step: Step | None = None
        self._ended = False
        self._count = 0
        self._sizes: dict[tuple[str, str], int] = {}
        self._files: dict[str, BinaryIO] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Transcript:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._stack.close()

    def take(self, record: Record) -> None:
        """Check the next record, and keep perf's recordings. Raises RecordUnexpected."""
        self._count += 1
        if self._count > MOST_RECORDS:
            raise RecordUnexpected(f"the guest sent more than {MOST_RECORDS} records")
        match record.kind:
            case "beat":
                pass
            case "step":
                self._begin(record)
            case "out" | "err" | "exit":
                self._of_step(record)
            case "file":
                self._file(record)
            case "bye":
                self.farewell = read_bye(record)
            case _:
                raise RecordUnexpected(
                    f"the guest said {record.kind} in the middle of its plan (record {record.seq})"
                )

    def _begin(self, record: Record) -> None:
        place = self._steps.get(record.name)
        if place is None:
            raise RecordUnexpected(f'the guest began a step "{record.name[:80]}" that its plan does not have')
        if self._step is not None and place <= self._steps[self._step.name]:
            raise RecordUnexpected(f'the guest began step "{record.name}" after "{self._step.name}"')
        self._step, self._ended = self._plan.steps[place], False

    def _of_step(self, record: Record) -> None:
        if self._step is None or record.name != self._step.name:
            raise RecordUnexpected(
                f'the guest sent "{record.kind}" of a step "{record.name[:80]}" that does not run'
            )
        if record.kind != "exit":
            self._add(record, PRINTED_BYTES)
        elif self._ended:
            raise RecordUnexpected(f'the guest ended step "{record.name}" twice')
        else:
            self._ended = True

    def _file(self, record: Record) -> None:
        if self._step is None or record.name not in self._step.send:
            raise RecordUnexpected(f'the guest sent a file "{record.name[:80]}" that its plan does not name')
        kind = _KINDS.get(record.name)
        self._add(record, RECORDING_BYTES if kind else FILE_BYTES)
        if kind:
            self._kept(kind).write(record.payload)

    def _kept(self, kind: Kind) -> BinaryIO:
        name = recording_name(kind)
        if name not in self._files:
            path = self._directory / name
            # What an earlier attempt left may be a link into the store.
            path.unlink(missing_ok=True)
            self._files[name] = self._stack.enter_context(path.open("xb"))
        return self._files[name]

    def _add(self, record: Record, most: int) -> None:
        key = (record.kind, record.name)
        size = self._sizes[key] = self._sizes.get(key, 0) + len(record.payload)
        if size > most:
            what = "file" if record.kind == "file" else "output of step"
            raise RecordUnexpected(f'{what} "{record.name}" from the guest is larger than {most >> 20} MiB')
