# SPDX-License-Identifier: GPL-2.0-or-later
"""Read guests' files in a separate process and check its answer.

A reader has seen a stranger's bytes, so its answer is checked against the plan like the bytes themselves: types, counts,
names of metrics, finite numbers, whole trees.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kernels.artifacts.store import Artifact
from kernels.errors import ArtifactCorrupt, ArtifactMissing, ReadingStopped
from kernels.sandbox.reader import ReaderAnswer, ReaderLimits, opened, read_apart
from lab.models import Profile
from lab.profiles.analysis.frame_tree import TreeDamaged, unpack
from lab.profiles.counters import COUNTED_ITERATIONS, SHARED_LINES
from lab.runs import guest_limits
from lab.runs.record import TakenProfile
from lab.storage.raw_profiles import keep_raw
from workers.collect.reading import PROGRAM_MAP, RECORDS, SYSTEM_MAP, VMLINUX
from workers.collect.transcript import recording_name
from workers.drivers.base import RECORDS_FILE
from workers.errors import ProfileUnreadable
from workloads.catalog import is_exact
from workloads.errors import OutputUnreadable, WorkloadFailed
from workloads.instruction_clock import UNIT, Clock
from workloads.passes import RECORDERS, Kind
from workloads.readings import Iteration, Readings
from workloads.shared_lines import MOST_TEXT
from workloads.step import Purpose

READER = "workers.collect.reading:prepare"
LIMITS = ReaderLimits(seconds=guest_limits.READER_SECONDS, memory=guest_limits.READER_MEMORY_BYTES)
_TREES_OF_EXACT = 2
MOST_EXTRAS = guest_limits.EXTRAS_BYTES
_MOST_METRICS = guest_limits.METRICS
_MOST_COUNTERS = guest_limits.COUNTERS
# The errors that a reader may name; any other answer is unreadable output.
_RAISED: Mapping[str, type[ArtifactCorrupt | ProfileUnreadable | WorkloadFailed | OutputUnreadable]] = {
    refusal.__name__: refusal for refusal in (ArtifactCorrupt, ProfileUnreadable, WorkloadFailed)
}


@dataclass(frozen=True, slots=True)
class Sent:
    """One boot whose guest has left. directory: of the run, with its records and recordings.

    workload: "" where nothing was measured. cpus: of the guest; 0 where nobody knows. threads: of the workload, each
    with its own timed intervals. calls: what the microscope left of an exact run.
    """

    directory: Path
    workload: str = ""
    purpose: Purpose = "measured"
    clock: Clock = "wall"
    iterations: int = 0
    warmup: int = 0
    cpus: int = 0
    threads: int = 1
    calls: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Collected:
    """A profiled run, in the columns of Profile and Run.

    extras: how many timed iterations the counters cover, how many waits of each kind have only one end, and the report
    of `perf c2c`.
    """

    profiles: tuple[TakenProfile, ...] = ()
    counters: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    unavailable: tuple[Mapping[str, str], ...] = ()
    extras: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FromGuest:
    """A guest's results."""

    readings: Readings
    collected: Collected


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


_Count = Annotated[int, Field(ge=0, lt=1 << 63)]
_Name = Annotated[str, Field(max_length=200)]
_BuildId = Annotated[str, Field(max_length=64, pattern=r"^[0-9a-f]*$")]


class _Iteration(_Strict):
    index: _Count
    warmup: bool
    values: dict[_Name, float] = Field(max_length=_MOST_METRICS)


class _Readings(_Strict):
    iterations: list[_Iteration] = Field(max_length=100_000)
    extras: dict[str, Any]
    line: Annotated[str, Field(max_length=4000)]


class _Profile(_Strict):
    kind: str
    waits: _Count
    overhead: float | None
    lost: _Count
    throttled: _Count
    truncated: Annotated[str, Field(max_length=2000)]
    kernel_build_id: _BuildId


class _Missing(_Strict):
    what: Annotated[str, Field(max_length=100_000)]
    why: Annotated[str, Field(max_length=4000)]


class _Profiled(_Strict):
    profiles: list[_Profile] = Field(max_length=len(RECORDERS))
    counters: dict[_Name, dict[_Name, float]]
    unavailable: list[_Missing] = Field(max_length=1000)
    counted_iterations: _Count
    half_waits: dict[str, _Count]
    shared_lines: Annotated[str, Field(max_length=MOST_TEXT)]


class _Exact(_Strict):
    kernel_build_id: _BuildId


class _Answered(_Strict):
    readings: _Readings | None = None
    profiled: _Profiled | None = None
    exact: _Exact | None = None


def read_guest(sent: Sent, artifact: Artifact, home: Path) -> FromGuest:
    """Read a boot's records; of a profiled run keep each perf.data under its hash in `home`, and read it.

    Raises WorkloadFailed, OutputUnreadable, ProfileUnreadable, ReadingStopped: the guest's; ReaderUnavailable,
    ArtifactCorrupt, ArtifactMissing: the lab's.
    """
    profiled, exact = sent.purpose == "profiled", is_exact(sent.purpose, sent.clock)
    hashes = _kept(sent.directory, home) if profiled and not exact else {}
    paths = {RECORDS: sent.directory / RECORDS_FILE}
    if profiled:
        if not artifact.system_map.exists() or not artifact.vmlinux.exists():
            raise ArtifactMissing(f"artifact {artifact.key[:12]} is no longer in the store")
        paths |= {SYSTEM_MAP: artifact.system_map, VMLINUX: artifact.vmlinux}
        paths |= {kind: sent.directory / recording_name(kind) for kind in hashes}
    if exact:
        paths |= {PROGRAM_MAP: sent.directory / PROGRAM_MAP, **{path.name: path for path in sent.calls}}
    request = {
        "files": list(paths),
        "workload": sent.workload,
        "purpose": sent.purpose,
        "clock": sent.clock,
        "iterations": sent.iterations,
        "warmup": sent.warmup,
        "release": artifact.metadata.release,
        "cpus": sent.cpus,
        "windows": sent.iterations * sent.threads,
    }
    with opened(*paths.values()) as files:
        answer = read_apart(READER, request, files, what="what the guest sent", limits=LIMITS)
    checked = _checked(answer)
    readings = _readings(checked.readings)
    if exact:
        # Its values repeat those of the measured boots, or are of a boot that was shifted on purpose.
        collected = _exactly(checked.exact, answer, readings, sent)
        readings = replace(readings, iterations=())
    else:
        collected = _collected(checked.profiled, answer, hashes)
    return FromGuest(readings, collected)


def _kept(directory: Path, home: Path) -> dict[Kind, str]:
    """Return the hash of each recording that the guest sent; all are kept unchanged."""
    files = {kind: directory / recording_name(kind) for kind in RECORDERS}
    return {
        kind: keep_raw(home, file) for kind, file in files.items() if file.is_file() and file.stat().st_size
    }


def raise_refusal(value: object) -> None:
    """Raise the error that a reader named, if any."""
    if isinstance(value, dict) and isinstance(refused := value.get("refused"), dict):
        refusal = _RAISED.get(str(refused.get("class")), OutputUnreadable)
        message = "".join(sign if sign.isprintable() else "?" for sign in str(refused.get("message"))[:2000])
        raise refusal(message, str(refused.get("detail", ""))[:65536])


def _checked(answer: ReaderAnswer) -> _Answered:
    value = answer.value
    raise_refusal(value)
    try:
        return _Answered.model_validate(value)
    except ValidationError as exc:
        place = ".".join(map(str, exc.errors()[0]["loc"]))[:200]
        raise ReadingStopped(
            f"what the guest sent could not be read: the answer of its reader is malformed, at {place!a}"
        ) from exc


def _readings(read: _Readings | None) -> Readings:
    if read is None:
        return Readings(())
    if len(json.dumps(read.extras)) > MOST_EXTRAS:
        raise OutputUnreadable(f"the guest printed more than {MOST_EXTRAS >> 20} MiB beside its measurements")
    iterations = tuple(
        Iteration(iteration.index, iteration.warmup, iteration.values) for iteration in read.iterations
    )
    return Readings(iterations, read.extras, read.line)


def _collected(read: _Profiled | None, answer: ReaderAnswer, hashes: Mapping[Kind, str]) -> Collected:
    if read is None:
        return Collected()
    if len(answer.blobs) != len(read.profiles) or sum(map(len, read.counters.values())) > _MOST_COUNTERS:
        raise ReadingStopped(
            "what the guest sent could not be read: the answer of its reader is malformed (its trees or counters)"
        )
    extras: dict[str, Any] = {COUNTED_ITERATIONS: read.counted_iterations, "half_waits": read.half_waits}
    if read.shared_lines:
        extras[SHARED_LINES] = read.shared_lines
    return Collected(
        tuple(
            _profile(profile, blob, hashes) for profile, blob in zip(read.profiles, answer.blobs, strict=True)
        ),
        read.counters,
        tuple(missing.model_dump() for missing in read.unavailable),
        extras,
    )


def _exactly(read: _Exact | None, answer: ReaderAnswer, readings: Readings, sent: Sent) -> Collected:
    if read is None or len(answer.blobs) != _TREES_OF_EXACT:
        raise ReadingStopped(
            "the exact profile could not be read: the answer of its reader is malformed (its trees)"
        )
    try:
        tree, calls = (unpack(blob) for blob in answer.blobs)
    except TreeDamaged as exc:
        raise ReadingStopped(f"an exact profile cannot be kept: {exc}") from exc
    if not np.array_equal(tree.parent, calls.parent):
        raise ReadingStopped(
            "the exact profile could not be read: the answer of its reader is malformed (its trees differ)"
        )
    profile = TakenProfile(
        tree=tree,
        calls=calls,
        kind=Profile.Kind.EXACT,
        operations=operations(readings) or sent.iterations,
        kernel_build_id=read.kernel_build_id,
    )
    return Collected(profiles=(profile,))


def operations(readings: Readings) -> int:
    """Return how many operations the timed iterations did: all instructions divided by those of one; 0 if a program does not say."""
    done = 0.0
    for iteration in readings.iterations:
        each = next((v for name, v in iteration.values.items() if name.startswith(f"{UNIT}_per_")), 0.0)
        if not iteration.warmup and each > 0:
            done += iteration.values.get(UNIT, 0.0) / each
    return round(done)


def _profile(profile: _Profile, blob: bytes, hashes: Mapping[Kind, str]) -> TakenProfile:
    kinds: dict[str, str] = {kind: sha256 for kind, sha256 in hashes.items()}  # noqa: C416  other types
    if profile.kind not in kinds or (profile.overhead is not None and not math.isfinite(profile.overhead)):
        raise ReadingStopped("the guest sent a profile, but none was recorded")
    try:
        tree = unpack(blob)
    except TreeDamaged as exc:
        raise ReadingStopped(f"a profile that the guest recorded cannot be kept: {exc}") from exc
    return TakenProfile(
        tree=tree,
        kind=Profile.Kind(profile.kind),
        perf_data_sha256=kinds[profile.kind],
        **profile.model_dump(exclude={"kind"}),
    )
