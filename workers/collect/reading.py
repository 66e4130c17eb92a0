# SPDX-License-Identifier: GPL-2.0-or-later
"""Read what a guest sent, in a process without privileges: its records, recordings and its kernel's files become JSON and trees.

`prepare` runs before the process gives up its privileges, the function it returns afterwards (kernels/sandbox/reader.py). Expected
refusals are returned by the name of their class; fromguest.py raises them again.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from kernels.artifacts.elf_sections import Readable
from kernels.errors import ArtifactCorrupt
from workers.collect.exact import Watched, read_exact
from workers.collect.profiled import RecordedProfiles, read_profiled
from workers.errors import ProfileUnreadable
from workloads.catalog import Workload, load_catalog
from workloads.errors import OutputUnreadable, RecordCorrupt, WorkloadFailed
from workloads.guest.records import Record, RecordReader
from workloads.instruction_clock import Clock
from workloads.interpret import load_parser
from workloads.passes import RECORDERS, Kind
from workloads.readings import Readings
from workloads.step import Purpose

RECORDS, SYSTEM_MAP, VMLINUX, PROGRAM_MAP = "records", "System.map", "vmlinux", "program.map"
CALLS = "calls."
REFUSALS = (ArtifactCorrupt, ProfileUnreadable, WorkloadFailed, OutputUnreadable, RecordCorrupt)
_PIECE = 1 << 20
_RECORDINGS = {recorder.data for recorder in RECORDERS.values()}
_KINDS: tuple[Kind, ...] = tuple(RECORDERS)
_MOST_DETAIL = 16 << 10

Result = tuple[Any, Sequence[bytes]]


def prepare(request: Mapping[str, Any]) -> Callable[[Sequence[Readable]], Result]:
    """Load what the reading needs, and return the function that reads.

    request: workload ("" for none), purpose, clock, iterations and warmup of the plan, release of the kernel, cpus of the
    guest, windows of an exact run; files: RECORDS; of a profiled run SYSTEM_MAP, VMLINUX and the kinds of its recordings,
    of an exact one PROGRAM_MAP and the microscope's files.
    """
    workload = load_catalog()[request["workload"]] if request["workload"] else None
    if workload is not None:
        # The parser is our own code, and can only be loaded now.
        load_parser(workload.definition)

    def read(files: Sequence[Readable]) -> Result:
        held = {file.name: file for file in files}
        try:
            return _read(request, workload, held)
        except REFUSALS as exc:
            refusal = {"class": type(exc).__name__, "message": str(exc), "detail": exc.detail[:_MOST_DETAIL]}
            return {"refused": refusal}, ()

    return read


def _read(request: Mapping[str, Any], workload: Workload | None, held: Mapping[str, Readable]) -> Result:
    records = tuple(records_in(held[RECORDS]))
    value: dict[str, Any] = {}
    trees: list[bytes] = []
    if workload is not None:
        purpose: Purpose = request["purpose"]
        clock: Clock = request["clock"]
        most = request["warmup"] + request["iterations"]
        value["readings"] = _plain(workload.read(records, purpose=purpose, clock=clock, most=most))
    if PROGRAM_MAP in held:
        calls = [file for name, file in held.items() if name.startswith(CALLS)]
        watched = Watched(held[SYSTEM_MAP], held[VMLINUX], held[PROGRAM_MAP], calls, request["windows"])
        value["exact"], trees = read_exact(records, watched)
    elif SYSTEM_MAP in held:
        recordings = {kind: held[kind] for kind in _KINDS if kind in held}
        run = RecordedProfiles(
            held[SYSTEM_MAP], held[VMLINUX], request["release"], recordings, request["cpus"]
        )
        value["profiled"], trees = read_profiled(records, run)
    return value, trees


def records_in(file: Readable) -> Iterator[Record]:
    """Yield the records of a file, without hello, heartbeats, and recordings, which have files of their own. Raises RecordCorrupt."""
    reader = RecordReader()
    data = memoryview(file.read_bytes())
    for at in range(0, len(data), _PIECE):
        for record in reader.feed(bytes(data[at : at + _PIECE])):
            if record.kind not in ("hello", "beat") and record.name not in _RECORDINGS:
                yield record


def _plain(readings: Readings) -> dict[str, Any]:
    return {
        "iterations": [asdict(iteration) for iteration in readings.iterations],
        "extras": readings.extras,
        "line": readings.line,
    }
