# SPDX-License-Identifier: GPL-2.0-or-later
"""Measure the replay: programs with known answers, its speed and memory, the scaling of recorded boots, and how far the
results depend on the machine's numbers.

    python -m bench.contention [--home DIR] [--cpus N] [--case WORKLOAD/PRESET,NAME=VALUE …] [--machine NAME]
                               [--rows N] [KEY …]

KEY: an artifact's key in the home, or its beginning; each is booted once with N CPUs, and what it recorded is replayed
on the machine. A replay of fewer CPUs takes the first ones of it. Without keys only the first table is printed.
"""

import random
import resource
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from bench.command import run, spent
from bench.instructions import DEADLINE_S, HOME, MEMORY_MIB, Case, artifact_of, case_of
from workers.boot_request import Job, boot_request
from workers.collect.waiting_reader import chain
from workers.drivers.base import Machine
from workers.drivers.libvirt import LibvirtDriver
from workers.errors import WorkersError
from workers.microscope.accesses import read_recordings
from workers.microscope.calltree import CallTree
from workers.microscope.contention import Contention
from workers.microscope.line_names import LineNames
from workers.microscope.lock_functions import lock_function_lines
from workers.microscope.looking import look_at
from workers.microscope.replay import Trace, compile_replay, replay
from workers.tests.tracewriter import ATOMIC, HEAP, ROLES, STORE, Recorder, bare, write_trace
from workloads.compile import compile_programs
from workloads.machines import LATENCIES, MachineModel, machine_model, own_machine

COUNTS = (1, 2, 4, 8, 12, 16, 20, 24, 32)
WORK, HELD, TRANSFER, ROUNDS = 8000, 900, 40, 1500


@dataclass(frozen=True, slots=True)
class Boot:
    """A boot's recording, and the names of its functions."""

    name: str
    trace: Trace
    roles: str
    tree: CallTree
    names: LineNames

    def share_of(self, result: Contention, machine: MachineModel, names: Sequence[str]) -> float:
        """Share of all cycles in functions of these names, their waiting included; all CPUs of the boot."""
        own = machine.numbers.cycles_per_instruction * self.tree.instructions
        cycles = own + result.weights(len(self.tree.names))
        picked = [at for at, name in enumerate(self.tree.names) if name in names]
        return float(cycles[picked].sum()) / result.total.total


def main(
    keys: Annotated[list[str] | None, typer.Argument(metavar="KEY")] = None,
    home: Path = HOME,
    cpus: int = 8,
    case: str = "showgids/smoke",
    machine: str = "one-socket",
    rows: int = 10,
) -> int:
    """Print the tables."""
    with tempfile.TemporaryDirectory(dir=home if keys else None) as name:
        place = Path(name)
        place.chmod(0o711)
        program = compile_replay(place)
        known_answers(program, place)
        try:
            recorded = case_of(f"{case},cpus={cpus}", "contention")
            boots = [record(home, place, key, recorded, cpus) for key in keys or ()]
            real_boots(program, boots, machine_model(machine), rows)
        except WorkersError as exc:
            print(exc, file=sys.stderr)
            return 1
    return 0


def known_answers(program: Path, place: Path) -> None:
    """Print a spinlock's throughput beside mean value analysis, and the replay's speed on the largest."""
    print(
        f"a spinlock held {HELD} cycles, {WORK} in between, {TRANSFER} a transfer: acquisitions per 1,000 cycles"
    )
    print(f"{'CPUs':>6} {'replay':>8} {'analysis':>9} {'off by':>8}")
    for cpus in COUNTS:
        trace = write_trace(place / "trace", spinlock(cpus))
        result, seconds = timed(program, trace, ROLES, bare(transfer_cycles=TRANSFER))
        measured = cpus * ROUNDS / (result.total.total / cpus)
        exact = mean_value_analysis(cpus, WORK, HELD + (TRANSFER if cpus > 1 else 0))
        print(f"{cpus:6} {1000 * measured:8.3f} {1000 * exact:9.3f} {measured / exact - 1:8.1%}")
    print(f"the last: {result.total.accesses / seconds / 1e6:.1f} million accesses a second of CPU time\n")


def spinlock(cpus: int) -> list[Recorder]:
    """Return CPUs that take one lock; work and holding are exponential, as the analysis wants."""
    dice = random.Random(cpus)
    recorders = [Recorder(cpu) for cpu in range(cpus)]
    for recorder in recorders:
        for _ in range(ROUNDS):
            recorder.access(ATOMIC, HEAP, size=4, after=round(dice.expovariate(1 / WORK)))
            recorder.access(STORE, HEAP, size=1, after=round(dice.expovariate(1 / HELD)))
    return recorders


def mean_value_analysis(cpus: int, work: float, service: float) -> float:
    """Return the exact throughput of work without a queue, then one server in order of arrival."""
    queue = throughput = 0.0
    for population in range(1, cpus + 1):
        response = service * (1 + queue)
        throughput = population / (work + response)
        queue = throughput * response
    return throughput


def timed(program: Path, trace: Trace, roles: str, machine: MachineModel) -> tuple[Contention, float]:
    """Return a replay and the CPU seconds it took."""
    before = spent()
    result = replay(program, trace, roles, machine)
    return result, max(1e-3, spent() - before)


def record(home: Path, place: Path, key: str, case: Case, cpus: int) -> Boot:
    """Boot a kernel under the microscope and return what its program's first two intervals recorded. Raises WorkersError."""
    artifact = artifact_of(home, key)
    directory = place / artifact.metadata.release
    directory.mkdir(mode=0o711)
    programs = compile_programs(home / "programs", [case.workload])
    look = look_at(artifact, programs[case.workload.definition.program], home, directory)
    plan = case.workload.plan(case.params, iterations=2, warmup=1, clock="contention")
    job = Job(f"bench: {case.name}", case.workload, plan, Machine(cpus, MEMORY_MIB, "tcg", "contention"))
    request = boot_request(job, artifact, home, directory, replace(look.microscope, accesses=True))
    driver = LibvirtDriver(home)
    with driver.boot(request) as session:
        for _ in session.records(DEADLINE_S):
            pass
    driver.close()
    recording = read_recordings(directory, cpus)[0]
    (tree, *_) = look.call_trees(request)
    text = artifact.system_map.read_text()
    return Boot(
        artifact.metadata.release,
        Trace(recording.calls, recording.accesses),
        lock_function_lines(text),
        tree,
        LineNames(text, partial(chain, tree)),
    )


def real_boots(program: Path, boots: Sequence[Boot], machine: MachineModel, rows: int) -> None:
    """Print speed, waits, scaling and sensitivity of recorded boots."""
    for boot in boots:
        result, seconds = timed(program, boot.trace, boot.roles, machine)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
        print(
            f"{boot.name} on {machine.name}: {result.total.accesses:,} accesses in {seconds:.2f} CPU s, "
            f"{result.total.accesses / seconds / 1e6:.1f} million a second, at most {peak} MiB; "
            f"slowdown {result.slowdown:.2f}, waiting {result.share_waiting:.1%}, forced {result.forced}"
        )
        for name, cycles in waits(boot, result).most_common(rows):
            print(f"  {cycles / result.total.total:6.1%} {name}")
        for line in result.lines[:rows]:
            shared = ", false sharing" if line.false_sharing else ""
            print(f"  {line.cycles / result.total.total:6.1%} line {boot.names.line(line)}{shared}")
        for lock in result.locks[:rows]:
            print(f"  {lock.cycles / result.total.total:6.1%} lock {boot.names.lock(lock)}")
    if boots:
        table("slowdown by CPUs", boots, scaling(program, boots, machine))
        table("slowdown by machine", boots, sensitivity(program, boots, machine))


def waits(boot: Boot, result: Contention) -> Counter[str]:
    """Return cycles waited by function."""
    waited: Counter[str] = Counter()
    for row in result.nodes:
        waited[boot.tree.names[row.node]] += row.transfer + row.lock
    return waited


def scaling(program: Path, boots: Sequence[Boot], machine: MachineModel) -> Iterator[tuple[str, list[str]]]:
    """Yield a row for each number of CPUs that all boots have."""
    most = min(len(boot.trace.accesses) for boot in boots)
    for cpus in [count for count in COUNTS if count <= most]:
        results = [replay(program, boot.trace.first(cpus), boot.roles, machine) for boot in boots]
        yield str(cpus), [f"{result.slowdown:.2f}" for result in results]


def sensitivity(
    program: Path, boots: Sequence[Boot], machine: MachineModel
) -> Iterator[tuple[str, list[str]]]:
    """Yield a row for the machine, and for it with other numbers: slowdown, and share of down_read and up_read."""
    others = [machine, machine.scaled(0.5), machine.scaled(2)]
    others += [machine.scaled(factor, name) for name in LATENCIES for factor in (0.5, 2)]
    for number in (machine.numbers.cycles_per_instruction / 2, machine.numbers.cycles_per_instruction * 2):
        others.append(own_machine({"cycles_per_instruction": number}, machine.name))
    for other in others:
        results = [replay(program, boot.trace, boot.roles, other) for boot in boots]
        name = (
            other.name if other.sources else f"{other.numbers.cycles_per_instruction:g} cycles an instruction"
        )
        yield (
            name,
            [
                f"{result.slowdown:.2f} ({boot.share_of(result, other, ('down_read', 'up_read')):.0%})"
                for boot, result in zip(boots, results, strict=True)
            ],
        )


def table(title: str, boots: Sequence[Boot], rows: Iterator[tuple[str, list[str]]]) -> None:
    """Print a row at a time, a column for each boot."""
    print(f"\n{title:44}" + "".join(f"{boot.name:>16}" for boot in boots))
    for name, values in rows:
        print(f"{name:44}" + "".join(f"{value:>16}" for value in values), flush=True)


if __name__ == "__main__":
    run(main)
