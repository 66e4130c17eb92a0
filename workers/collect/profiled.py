# SPDX-License-Identifier: GPL-2.0-or-later
"""What a profiled run brought home: a profile of each kind, counters, and what was not available here, and why.

Without its CPU profile a profiled run is none; anything else that is missing is told beside what is there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernels.artifact import Artifact
from kernels.elf import build_id_in, read_build_id
from lab.models import Profile
from lab.queries.counters import COUNTED_ITERATIONS
from lab.record import TakenProfile
from lab.storage.rawprofiles import keep_raw
from workers.collect.counters import SOURCES, read_counters
from workers.collect.perfdata import Kernel, PerfProfile, read_perf_data, read_waits
from workers.errors import ProfileUnreadable
from workloads.guest.records import Record
from workloads.passes import (
    COUNTS,
    MODULE_SYMBOLS,
    NOTES,
    PERF_DATA,
    PERF_STAT,
    Kind,
    Pass,
    counted_iterations,
    read_passes,
)
from workloads.readings import files_of

_CPUS_WITHOUT_A_QUEUE = 2
_WAITS: Mapping[Kind, str] = {"lock": "waits for locks", "off-cpu": "waits off the CPUs"}


@dataclass(frozen=True, slots=True)
class Collected:
    """As the columns of Profile and Run say.

    extras: over how many timed iterations the counters counted, and by kind how many waits have one end only.
    """

    profiles: tuple[TakenProfile, ...] = ()
    counters: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    unavailable: tuple[Mapping[str, str], ...] = ()
    extras: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class _Account:
    """What turned out while files were read. missing: what, and why; half: waits with one end, by kind."""

    missing: dict[str, str]
    half: dict[str, int] = field(default_factory=dict)


def collect(
    records: Sequence[Record], artifact: Artifact, home: Path, directory: Path, cpus: int = 0
) -> Collected:
    """Keep each perf.data as it came, in `directory` and under its hash in `home`, and read it.

    cpus: of the guest; 0 where nobody knows. Raises ProfileUnreadable when there is no CPU profile of this kernel.
    """
    files = files_of(records)
    told = build_id_in(files.get(NOTES, b""))
    kernel = Kernel(
        artifact.system_map,
        artifact.metadata.release,
        read_build_id(artifact.vmlinux),
        told_id=told,
        kallsyms=files.get(MODULE_SYMBOLS, b""),
    )
    counted = read_counters(files.get(PERF_STAT, b""), files.get(COUNTS, b""))
    account = _Account(dict(counted.missing))
    if not told:
        account.missing["the kernel's build id"] = f"the guest did not send {NOTES}"
    profiles = []
    for taken in _with_cpu(read_passes(records), files):
        try:
            profiles.append(_read(taken, kernel, home, directory, account))
        except ProfileUnreadable as exc:
            if taken.kind == "cpu":
                raise
            account.missing[_WAITS[taken.kind]] = str(exc)
    if any(one.kind == Profile.Kind.LOCK for one in profiles):
        # kernel/locking/qspinlock.c tells of a wait only behind the pending bit, which the first waiter takes.
        everyone = 0 < cpus <= _CPUS_WITHOUT_A_QUEUE
        untold = "waits for spinlocks" if everyone else "each spinlock's first waiter"
        account.missing[untold] = "the kernel's tracepoints tell of a spinlock's waiters from the second on"
    extras = {COUNTED_ITERATIONS: counted_iterations(records), "half_waits": account.half}
    return Collected(tuple(profiles), counted.counters, _by_reason(account.missing), extras)


def _with_cpu(passes: Sequence[Pass], files: Mapping[str, bytes]) -> list[Pass]:
    """The passes, the CPU's among them: without one its file is an empty one, and says so when it is read."""
    cpu = next((one for one in passes if one.kind == "cpu"), None)
    others = [one for one in passes if one is not cpu]
    return [cpu or Pass("cpu", files.get(PERF_DATA, b""), "", None, ()), *others]


def _read(taken: Pass, kernel: Kernel, home: Path, directory: Path, account: _Account) -> TakenProfile:
    if taken.why and taken.kind != "cpu":
        raise ProfileUnreadable(taken.why)
    perf_data = directory / ("perf.data" if taken.kind == "cpu" else f"perf.{taken.kind}.data")
    # What an earlier attempt left may be a link into the store.
    perf_data.unlink(missing_ok=True)
    perf_data.write_bytes(taken.data)
    sha256 = keep_raw(home, perf_data)
    if taken.kind == "cpu":
        found = read_perf_data(perf_data, kernel)
    else:
        found = read_waits(perf_data, kernel, taken.kind, taken.windows)
        _account_for_halves(account, taken.kind, found)
    if taken.overhead is None:
        account.missing["the profilers' overhead"] = (
            "the workload keeps its own time: it cannot run once recorded, once not"
        )
    return TakenProfile(
        tree=found.tree,
        kind=Profile.Kind(taken.kind),
        waits=found.waits,
        overhead=taken.overhead,
        lost=found.lost,
        throttled=found.throttled,
        truncated=found.truncated,
        kernel_build_id=found.kernel_build_id,
        perf_data_sha256=sha256,
    )


def _account_for_halves(account: _Account, kind: Kind, found: PerfProfile) -> None:
    """Waits that are known of, but not how long they were; told alike in all boots, however many there are."""
    account.half[kind] = found.unended + found.unbegun
    if found.unended:
        why = "they went on when a timed interval ended, or events were lost"
        account.missing[f"{_WAITS[kind]}: those without an end"] = why
    if found.unbegun:
        why = "they had begun before a timed interval, or events were lost"
        account.missing[f"{_WAITS[kind]}: those without a begin"] = why


def _by_reason(missing: Mapping[str, str]) -> tuple[Mapping[str, str], ...]:
    """What is missing for one reason in one line; a whole source of counters stands by itself, to be known by."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for what, why in missing.items():
        reasons.setdefault((why, what if what in SOURCES else ""), []).append(what)
    return tuple({"what": ", ".join(what), "why": why} for (why, _), what in reasons.items())
