# SPDX-License-Identifier: GPL-2.0-or-later
"""The passes of a profiled run: its measured step once under each recorder, so that none disturbs another's numbers.

First it runs under counters only (`perf stat`, /proc/vmstat, /proc/slabinfo), then under each recorder in turn. There
the harness runs each timed iteration once recorded and once not, seconds apart: this shows the recorder's overhead
whatever the host does meanwhile. Last comes `perf c2c`, if the machine supports it (shared_lines.py).
"""

import math
import statistics
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, Literal

from workloads.errors import OutputUnreadable
from workloads.guest.plan import Step
from workloads.guest.records import Record
from workloads.readings import RECORDER_MARK, complaint, files_of, joined, json_lines
from workloads.shared_lines import shared_lines_step

Kind = Literal["cpu", "lock", "off-cpu"]

PERF_DATA = "/tmp/perf.data"  # noqa: S108 a path in the guest, which has one user
PERF_STAT = "/tmp/perf.stat"  # noqa: S108
COUNTS = "/tmp/kperflab.counts"  # noqa: S108
NOTES = "/sys/kernel/notes"
MODULE_SYMBOLS = "/tmp/modules.kallsyms"  # noqa: S108
_FIFOS = ("/tmp/perf.ctl", "/tmp/perf.ack")  # noqa: S108
PERF_DEADLINE_S = 60
_LONGEST_REASON = 1000

SOFTWARE = ("context-switches", "cpu-migrations", "minor-faults", "major-faults")
HARDWARE = ("cycles", "instructions", "branches", "branch-misses", "cache-references", "cache-misses")

# For a program without the harness: takes the counts before and after the whole program, in the form of harness/counts.c.
_AROUND = """file=$1; shift
take() { for path in /proc/vmstat /proc/slabinfo; do
    if [ -r $path ]; then echo "= $1 $path"; cat $path; else echo "= $1 $path: not there"; fi
done >>$file; }
echo 1 >/proc/sys/vm/stat_refresh; take before
"$@"; status=$?
echo 1 >/proc/sys/vm/stat_refresh; take after
exit $status"""
# If this kernel cannot run a recorder, the script writes the reason and the plan continues with the others.
_OPTIONAL = """why=$1; rm -f $3; : >$why; : >$2; shift 3
if [ ! -d /sys/kernel/tracing/events ]; then
    echo "tracefs shows no events here: this kernel has no event tracing" >$why; exit 0
fi
while [ "$1" != -- ]; do
    if [ ! -d /sys/kernel/tracing/events/$1 ]; then echo "this kernel has no tracepoint ${1%/*}:${1#*/}" >$why; exit 0; fi
    shift
done
shift; "$@" || echo "the recorder ended with status $?" >$why"""
_MODULES = f"grep -F '[' /proc/kallsyms >{MODULE_SYMBOLS}; true"


@dataclass(frozen=True, slots=True)
class Recorder:
    """One way to record. tracepoints: the tracepoints that it needs, as folders of tracefs's events."""

    kind: Kind
    data: str
    events: tuple[str, ...]
    tracepoints: tuple[str, ...] = ()

    @property
    def why(self) -> str:
        """Return the guest's file with the reason why there is no data."""
        return f"{self.data}.why"


# Their times are of the guest's CLOCK_MONOTONIC, as are the recorded intervals that the harness prints.
_WAITS = ("-c", "1", "-m", "4M", "-k", "mono")
RECORDERS: Mapping[Kind, Recorder] = {
    "cpu": Recorder("cpu", PERF_DATA, ("-e", "cpu-clock")),
    "lock": Recorder(
        "lock",
        "/tmp/perf.lock.data",  # noqa: S108
        (*_WAITS, "-e", "lock:contention_begin", "-e", "lock:contention_end/call-graph=no/"),
        ("lock/contention_begin", "lock/contention_end"),
    ),
    "off-cpu": Recorder(
        "off-cpu",
        "/tmp/perf.off-cpu.data",  # noqa: S108
        (*_WAITS, "-e", "sched:sched_switch"),
        ("sched/sched_switch",),
    ),
}


@dataclass(frozen=True, slots=True)
class Pass:
    """The result of one recorder.

    why: the reason for no data, "" if there is some; the data is a separate file. overhead: elapsed with the recorder / elapsed without, minus 1;
    None if the program has no timed iterations of its own. windows: the intervals in which it recorded, in seconds of the guest's
    CLOCK_MONOTONIC; empty if it recorded all the time.
    """

    kind: Kind
    why: str
    overhead: float | None
    windows: tuple[tuple[float, float], ...]


def passes_of(step: Step, *, harness: bool, hz: str, off_cpu: bool) -> list[Step]:
    """Return the passes of a profiled run for a measured step. harness: the program takes control=; hz: samples per second and CPU."""
    kinds: tuple[Kind, ...] = ("cpu", "lock", "off-cpu") if off_cpu else ("cpu", "lock")
    fifos = Step(f"{step.name}{RECORDER_MARK}fifos", ("mkfifo", *_FIFOS), PERF_DEADLINE_S, "setup")
    return [
        *([fifos] if harness else []),
        _counted(step, harness),
        *(_recorded(step, RECORDERS[kind], harness, hz) for kind in kinds),
        shared_lines_step(step, _switched() if harness else (), (_control(),) if harness else ()),
        symbols_of(step),
    ]


def symbols_of(step: Step) -> Step:
    """Return the step that asks the guest for its kernel's identity and for the functions of its modules."""
    name, ask = f"{step.name}{RECORDER_MARK}symbols", ("sh", "-c", _MODULES)
    return Step(name, ask, PERF_DEADLINE_S, "collect", (NOTES, MODULE_SYMBOLS))


def _counted(step: Step, harness: bool) -> Step:
    perf = ("perf", "stat", "-a", "-x", ",", "-o", PERF_STAT, "-e", ",".join((*SOFTWARE, *HARDWARE)))
    if harness:
        argv = (*perf, *_switched(), "--", *step.argv, _control(), f"counts={COUNTS}")
    else:
        argv = ("sh", "-c", _AROUND, "counted", COUNTS, *perf, "--", *step.argv)
    return replace(
        step, argv=argv, deadline_s=step.deadline_s + PERF_DEADLINE_S, send=(*step.send, PERF_STAT, COUNTS)
    )


def _recorded(step: Step, recorder: Recorder, harness: bool, hz: str) -> Step:
    perf: tuple[str, ...] = ("perf", "record", "-a", "-g", *recorder.events)
    if recorder.kind == "cpu":
        perf += ("-F", hz)
    # User code has no symbols here, and perf would look for build ids in files that the guest does not have.
    perf += ("--kernel-callchains", "--no-buildid", "--no-buildid-cache", "-o", recorder.data)
    if harness:
        argv = (*perf, *_switched(), "--", *step.argv, _control(), "reference=1")
    else:
        argv = (*perf, "--", *step.argv)
    if recorder.tracepoints:
        # Files that were already sent are removed to free the guest's memory.
        old = " ".join(other.data for other in RECORDERS.values() if other is not recorder)
        files = (recorder.why, recorder.data, old)
        argv = ("sh", "-c", _OPTIONAL, recorder.kind, *files, *recorder.tracepoints, "--", *argv)
    send = (recorder.data, recorder.why) if recorder.tracepoints else (recorder.data,)
    return replace(
        step,
        name=f"{step.name}{RECORDER_MARK}{recorder.kind}",
        argv=argv,
        deadline_s=step.deadline_s + PERF_DEADLINE_S,
        send=send,
    )


def _switched() -> tuple[str, ...]:
    """Return perf's options to start switched off; the harness switches it on for timed iterations only."""
    return ("-D", "-1", "--control", "fifo:" + ",".join(_FIFOS))


def _control() -> str:
    return "control=" + ",".join(_FIFOS)


def read_passes(records: Sequence[Record], recorded: Set[Kind]) -> tuple[Pass, ...]:
    """Return the recorders' passes of a profiled run, in their order. Raises OutputUnreadable.

    recorded: the kinds whose recorder left data.
    """
    files = files_of(records)
    kinds: dict[str, Recorder] = {known.kind: known for known in RECORDERS.values()}
    passes: dict[Kind, Pass] = {}
    for record in records:
        recorder = kinds.get(record.name.partition(RECORDER_MARK)[2])
        if record.kind != "exit" or recorder is None or recorder.kind in passes:
            continue
        objects = json_lines(records, record.name)
        why = files.get(recorder.why, b"").decode(errors="replace").strip()[:_LONGEST_REASON]
        if why or recorder.kind not in recorded:
            said = complaint(joined(records, "err", record.name).decode(errors="replace"))
            why = ": ".join(part for part in (why or "it left no data", said) if part)
        try:
            passes[recorder.kind] = Pass(recorder.kind, why, _overhead(objects), _windows(objects))
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError) as exc:
            reason = type(exc).__name__
            raise OutputUnreadable(f"an iteration of {record.name} is not in our form: {reason}") from exc
    return tuple(passes.values())


def counted_iterations(records: Sequence[Record]) -> int:
    """Return the number of timed iterations of the counted pass; 1 if the program keeps its own time. Raises OutputUnreadable."""
    steps = {record.name.partition(RECORDER_MARK)[0] for record in records if RECORDER_MARK in record.name}
    counted = sum(
        bool(iteration.get("recorded")) for step in steps for iteration in json_lines(records, step)
    )
    return counted or 1


def _overhead(objects: Sequence[Mapping[str, Any]]) -> float | None:
    """Return the median overhead of pairs of neighbouring iterations, both of which a slow drift affects equally."""
    timed = [
        (bool(iteration["recorded"]), float(iteration["values"]["elapsed"]))
        for iteration in objects
        if "recorded" in iteration
    ]
    ratios = []
    for (recorded, first), (_, second) in zip(timed[::2], timed[1::2], strict=False):
        on, off = (first, second) if recorded else (second, first)
        if on > 0 and off > 0:
            ratios.append(math.log(on / off))
    return math.expm1(statistics.median(ratios)) if ratios else None


def _windows(objects: Sequence[Mapping[str, Any]]) -> tuple[tuple[float, float], ...]:
    return tuple(
        (float(iteration["window"][0]), float(iteration["window"][1]))
        for iteration in objects
        if "window" in iteration
    )
