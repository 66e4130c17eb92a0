# SPDX-License-Identifier: GPL-2.0-or-later
"""A boot's recorded accesses → its metrics under the contention clock, and what its CPUs waited for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from kernels.artifacts.store import Artifact
from kernels.artifacts.structures import read_structures
from kernels.errors import ReadingStopped
from kernels.sandbox.reader import ReaderLimits, opened, read_apart
from lab.models import Profile
from lab.one_line import one_line
from lab.profiles.analysis.frame_tree import FrameTree, TreeDamaged, unpack
from lab.runs import guest_limits
from lab.runs.record import TakenProfile
from workers.collect.fromguest import raise_refusal
from workers.collect.waiting_reader import MOST_CHAIN, MOST_FUNCTIONS
from workers.drivers.base import RECORDS_FILE
from workers.errors import ProfileUnreadable
from workers.microscope.accesses import Recording, read_recordings
from workers.microscope.contention import Contention, WaitShare
from workers.microscope.line_names import LineNames
from workers.microscope.lock_functions import lock_function_lines
from workers.microscope.looking import PROGRAM_MAP
from workers.microscope.replay import Trace, compile_replay, replay
from workers.microscope.slab_pages import SlabPages
from workloads.catalog import Workload
from workloads.contention import MACHINE, OPERATIONS, cpus_of
from workloads.errors import MachineModelInvalid
from workloads.machines import MachineModel, described_machine
from workloads.param import label
from workloads.readings import Readings

# Of locks and lines each: as many as people look at.
_MOST_ROWS = 20
_MOST_CALLERS = 3
READER = "workers.collect.waiting_reader:prepare"
LIMITS = ReaderLimits(seconds=guest_limits.READER_SECONDS, memory=guest_limits.READER_MEMORY_BYTES)
Chains = Mapping[int, list[str]]
_Name = Annotated[str, Field(max_length=1024)]


@dataclass(frozen=True, slots=True)
class RecordedBoot:
    """A boot whose accesses were recorded. directory: of the run. slabs: the guest's slab caches, for names."""

    directory: Path
    readings: Readings
    slabs: SlabPages | None = None


@dataclass(frozen=True, slots=True)
class Replayed:
    """A boot that was replayed: its metrics and evidence, and the profile of cycles waited per operation on the most CPUs."""

    readings: Readings
    profile: TakenProfile


class _Named(BaseModel, extra="forbid", strict=True):
    chains: list[Annotated[list[_Name], Field(max_length=MOST_CHAIN)]]
    functions: Annotated[dict[_Name, Annotated[int, Field(ge=0)]], Field(max_length=MOST_FUNCTIONS)]


def replayed(
    workload: Workload,
    params: Mapping[str, object],
    boot: RecordedBoot,
    artifact: Artifact,
    home: Path,
    beat: Callable[[], None],
    *,
    sensitive: bool = False,
) -> Replayed:
    """Return readings with the metrics of each number of CPUs in place of the numbers of operations, and the waiting.

    beat: called before each replay and before the call tree is read. sensitive: also report the cycles on the most CPUs with every
    latency halved and doubled, by two more replays. The recording is removed: it is large, and the next boot makes another.
    Raises ProfileUnreadable, TraceUnreadable, ReadingStopped: the guest's; BootDiscarded, ReplayFailed, ReplayTooSlow, ReaderUnavailable: the lab's.
    """
    directory, readings = boot.directory, boot.readings
    timed = [iteration for iteration in readings.iterations if not iteration.warmup]
    done = sum(iteration.values[OPERATIONS] for iteration in timed)
    try:
        recordings = read_recordings(directory, max(cpus_of(params)))
        if len(recordings) != 1:
            raise ProfileUnreadable(f"{len(recordings)} programs were recorded, where one was to measure")
        (recording,) = recordings
        size = {"records": recording.records, "bytes": recording.stored}
        results, latencies = _replays(recording, params, artifact, home, beat, sensitive=sensitive)
        beat()
    finally:
        for path in directory.glob("accesses.*"):
            path.unlink()
    most = max(results)
    chains, functions, tree = _named(recording, results[most], round(done), artifact, directory)
    names = LineNames(
        artifact.system_map.read_text(), chains.__getitem__, boot.slabs, read_structures(artifact.structures)
    )
    said = evidence(results[most], chains, functions, names) | _by_latency(results[most], latencies, done)
    operation = workload.definition.contending.operation if workload.definition.contending else ""
    values = _values(operation, results, [iteration.values[OPERATIONS] / most for iteration in timed])
    # What came before the first interval was not recorded, so that its replay begins with empty caches.
    iterations = tuple(
        replace(iteration, values=each, warmup=place == 0 and len(timed) > 1)
        for place, (iteration, each) in enumerate(zip(timed, values, strict=True))
    )
    waits = sum(row.transfers + row.lock_waits for row in results[most].nodes)
    return Replayed(
        Readings(iterations, {**readings.extras, "recorded": size, "contention": said}),
        TakenProfile(tree=tree, kind=Profile.Kind.WAITING, waits=waits, operations=round(done)),
    )


def _named(
    recording: Recording, result: Contention, operations: int, artifact: Artifact, directory: Path
) -> tuple[Chains, Mapping[str, int], FrameTree]:
    """Return the chains of functions that the evidence names, by node, the cycles waited in functions, and the tree of cycles waited per operation.

    Raises ProfileUnreadable, ReadingStopped, ReaderUnavailable.
    """
    asked = sorted(_nodes(result))
    with TemporaryDirectory() as place:
        waited = Path(place, "waited")
        waited.write_bytes(
            result.weights(Trace(recording.calls, recording.accesses).nodes).astype("<i8").tobytes()
        )
        guests = (directory / PROGRAM_MAP, waited, directory / RECORDS_FILE)
        paths = (recording.calls, artifact.system_map, *guests)
        with opened(*paths) as files:
            names = [path.name for path in paths]
            request = {"files": names, "chains": asked, "operations": operations}
            answer = read_apart(READER, request, files, what="the recorded call tree", limits=LIMITS)
    raise_refusal(answer.value)
    try:
        named, (blob,) = _Named.model_validate(answer.value), answer.blobs
        # A module's symbols are a guest's text.
        chains = [[one_line(name) for name in names] for names in named.chains]
        functions = {one_line(name): cycles for name, cycles in named.functions.items()}
        return dict(zip(asked, chains, strict=True)), functions, unpack(blob)
    except (ValidationError, ValueError, TreeDamaged) as exc:
        raise ReadingStopped(
            "the recorded call tree could not be read: the answer of its reader is malformed"
        ) from exc


def _nodes(result: Contention) -> set[int]:
    """Return the nodes of the call tree that the evidence names."""
    shares = [row.nodes for row in result.locks[:_MOST_ROWS]] + [
        row.nodes for row in result.lines[:_MOST_ROWS]
    ]
    return {share.node for row in shares for share in row}


def _replays(
    recording: Recording,
    params: Mapping[str, object],
    artifact: Artifact,
    home: Path,
    beat: Callable[[], None],
    *,
    sensitive: bool,
) -> tuple[dict[int, Contention], dict[float, Contention]]:
    """Return the replays of the first recorded CPUs, by their number; and of all of them, by the factor of other latencies."""
    program = compile_replay(home / "programs")
    roles = lock_function_lines(artifact.system_map.read_text())
    machine = described_machine(params[MACHINE.name])
    trace = Trace(recording.calls, recording.accesses)

    def replay_on(machine: MachineModel, cpus: Trace) -> Contention:
        # All of them together may take longer than a claim may be silent.
        beat()
        return replay(program, cpus, roles, machine)

    results = {count: replay_on(machine, trace.first(count)) for count in cpus_of(params)}
    others = _other_latencies(machine) if sensitive else {}
    return results, {times: replay_on(other, trace) for times, other in others.items()}


def _other_latencies(machine: MachineModel) -> dict[float, MachineModel]:
    """Return the machine by the factor of its latencies; none if these are beyond what a machine may have."""
    try:
        return {times: machine.scaled(times) for times in (0.5, 2.0)}
    except MachineModelInvalid:
        return {}


def _values(
    operation: str, results: Mapping[int, Contention], operations: Sequence[float]
) -> list[dict[str, float]]:
    """The metrics of each iteration. operations: of one CPU in each; all CPUs do the same."""
    values: list[dict[str, float]] = [{} for _ in operations]
    for count, result in results.items():
        if len(result.windows) != len(operations):
            raise ProfileUnreadable(
                f"{len(result.windows)} intervals were recorded, and {len(operations)} iterations were timed: "
                "something else in the guest executed the microscope's mark, or the workload ended early"
            )
        for each, done, cycles in zip(values, operations, result.windows, strict=True):
            each[f"cycles_per_{operation}_{label(count)}"] = cycles.total / (done * count)
            each[f"slowdown_{label(count)}"] = cycles.total / cycles.alone if cycles.alone else 1.0
            each[f"waiting_{label(count)}"] = 100 * cycles.waiting / cycles.total if cycles.total else 0.0
    return values


def _by_latency(result: Contention, others: Mapping[float, Contention], operations: float) -> dict[str, Any]:
    """Return the cycles per operation by the factor of all latencies, as evidence; nothing without other factors."""
    taken = {1.0: result, **others} if others else {}
    by_factor = {f"{times:g}": each.total.total / operations for times, each in taken.items()}
    return {"latencies": by_factor} if by_factor else {}


def evidence(
    result: Contention, chains: Chains, functions: Mapping[str, int], names: LineNames
) -> dict[str, Any]:
    """Return who waited for what in a replay, the largest waits first, as JSON; cycles of all CPUs and intervals.

    chains: of functions, innermost first, by node of the call tree. functions: the cycles waited in each.
    """
    return {
        "machine": result.machine.name,
        "machine_key": result.machine.key,
        "cpus": len(result.cpus),
        "cycles": result.total.total,
        "waiting": result.total.waiting,
        "functions": [{"chain": [name], "cycles": cycles} for name, cycles in functions.items()],
        "locks": [
            {
                "name": names.lock(row), "kind": row.kind, "cycles": row.cycles,
                "acquisitions": row.acquisitions, "contended": row.contended, "callers": _callers(chains, row.nodes),
            }
            for row in result.locks[:_MOST_ROWS]
        ],
        "lines": [
            {
                "name": names.line(row), "cycles": row.cycles, "transfers": row.transfers, "cpus": row.cpus,
                "false_sharing": row.false_sharing, "callers": _callers(chains, row.nodes),
            }
            for row in result.lines[:_MOST_ROWS]
        ],
    }  # fmt: skip


def _callers(chains: Chains, shares: Sequence[WaitShare]) -> list[dict[str, Any]]:
    return [{"chain": chains[share.node], "cycles": share.cycles} for share in shares[:_MOST_CALLERS]]
