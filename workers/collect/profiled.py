# SPDX-License-Identifier: GPL-2.0-or-later
"""Read the results of a profiled run: profiles of each kind, counters, and what was not available and why.

Runs in a separate process (reading.py): a guest wrote every byte here. A profiled run without a CPU profile is refused;
anything else that is missing is reported beside the rest.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kernels.artifacts.elf import build_id_in, read_build_id
from kernels.artifacts.elf_sections import Readable
from lab.from_attributes import attributes
from lab.profiles.analysis.frame_tree import pack
from workers.collect.counters import SOURCES, read_counters
from workers.collect.perfdata import ExpectedKernel, PerfProfile, read_perf_data, read_waits
from workers.errors import ProfileUnreadable
from workloads.guest.records import Record
from workloads.passes import (
    COUNTS,
    MODULE_SYMBOLS,
    NOTES,
    PERF_STAT,
    Kind,
    Pass,
    counted_iterations,
    read_passes,
)
from workloads.readings import files_of
from workloads.shared_lines import read_shared_lines

_CPUS_WITHOUT_A_QUEUE = 2
_WAITS: Mapping[Kind, str] = {"lock": "waits for locks", "off-cpu": "waits off the CPUs"}


@dataclass(slots=True)
class _Account:
    """Findings while files were read. missing: what, and why; half: waits with one end, by kind."""

    missing: dict[str, str]
    half: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RecordedProfiles:
    """A kernel's files and its recordings. recordings: perf.data by kind. cpus: of the guest; 0 where nobody knows."""

    system_map: Readable
    vmlinux: Readable
    release: str
    recordings: Mapping[Kind, Readable]
    cpus: int


def read_profiled(records: Sequence[Record], run: RecordedProfiles) -> tuple[dict[str, Any], list[bytes]]:
    """Return a profiled run as JSON, and the packed tree of each of its profiles.

    Raises ProfileUnreadable when there is no CPU profile of this kernel, OutputUnreadable, ArtifactCorrupt.
    """
    files = files_of(records)
    build_id = build_id_in(files.get(NOTES, b""))
    kernel = ExpectedKernel(
        run.system_map,
        run.release,
        read_build_id(run.vmlinux),
        told_id=build_id,
        kallsyms=files.get(MODULE_SYMBOLS, b""),
    )
    counted = read_counters(files.get(PERF_STAT, b""), files.get(COUNTS, b""))
    account = _Account(dict(counted.missing))
    if not build_id:
        account.missing["the kernel's build id"] = f"the guest did not send {NOTES}"
    profiles, trees = [], []
    for taken in _with_cpu(read_passes(records, set(run.recordings))):
        try:
            profile = _read(taken, kernel, run.recordings, account)
        except ProfileUnreadable as exc:
            if taken.kind == "cpu":
                raise
            account.missing[_WAITS[taken.kind]] = str(exc)
            continue
        trees.append(pack(profile.tree))
        profiles.append(_columns(taken, profile))
    if any(row["kind"] == "lock" for row in profiles):
        # kernel/locking/qspinlock.c tells of a wait only behind the pending bit, which the first waiter takes.
        everyone = 0 < run.cpus <= _CPUS_WITHOUT_A_QUEUE
        untold = "waits for spinlocks" if everyone else "each spinlock's first waiter"
        account.missing[untold] = "the kernel's tracepoints tell of a spinlock's waiters from the second on"
    shared, why_not = read_shared_lines(records)
    if why_not:
        account.missing["cache lines that CPUs shared (perf c2c)"] = why_not
    value = {
        "profiles": profiles,
        "counters": counted.counters,
        "unavailable": _by_reason(account.missing),
        "counted_iterations": counted_iterations(records),
        "half_waits": account.half,
        "shared_lines": shared,
    }
    return value, trees


def _with_cpu(passes: Sequence[Pass]) -> list[Pass]:
    """Return the passes, the CPU's first; if it is missing, an empty one, so that reading it reports that."""
    cpu = next((taken for taken in passes if taken.kind == "cpu"), None)
    others = [taken for taken in passes if taken is not cpu]
    return [cpu or Pass("cpu", "", None, ()), *others]


def _read(
    taken: Pass, kernel: ExpectedKernel, recordings: Mapping[Kind, Readable], account: _Account
) -> PerfProfile:
    if taken.kind not in recordings or (taken.kind != "cpu" and taken.why):
        why = taken.why or "perf left no data"
        raise ProfileUnreadable(why if taken.kind != "cpu" else f"there is no CPU profile: {why}")
    recording = recordings[taken.kind]
    if taken.kind == "cpu":
        profile = read_perf_data(recording, kernel)
    else:
        profile = read_waits(recording, kernel, taken.kind, taken.windows)
        _account_for_halves(account, taken.kind, profile)
    if profile.garbled:
        what = f"{profile.garbled} samples' frames at addresses that no program has"
        account.missing[what] = "they are shown as [unknown]: user code without frame pointers leaves such"
    if profile.others:
        account.missing[f"{profile.others} samples of other events"] = (
            "a profile is of one event, the first that was sampled"
        )
    if taken.overhead is None:
        account.missing["the profilers' overhead"] = (
            "the workload keeps its own time: it cannot run once recorded, once not"
        )
    return profile


def _columns(taken: Pass, profile: PerfProfile) -> dict[str, Any]:
    """A profile but for its tree."""
    of_profile = ("waits", "lost", "throttled", "truncated", "kernel_build_id")
    return {**attributes(taken, ("kind", "overhead")), **attributes(profile, of_profile)}


def _account_for_halves(account: _Account, kind: Kind, profile: PerfProfile) -> None:
    """Account for waits of unknown length, in the same words in all boots, however many there are."""
    account.half[kind] = profile.unended + profile.unbegun
    if profile.unended:
        why = "they went on when a timed interval ended, or events were lost"
        account.missing[f"{_WAITS[kind]}: those without an end"] = why
    if profile.unbegun:
        why = "they had begun before a timed interval, or events were lost"
        account.missing[f"{_WAITS[kind]}: those without a begin"] = why


def _by_reason(missing: Mapping[str, str]) -> list[dict[str, str]]:
    """Return missing parts, one line a reason; a whole missing source of counters has a line of its own."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for what, why in missing.items():
        reasons.setdefault((why, what if what in SOURCES else ""), []).append(what)
    return [{"what": ", ".join(what), "why": why} for (why, _), what in reasons.items()]
