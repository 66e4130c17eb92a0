# SPDX-License-Identifier: GPL-2.0-or-later
"""Workloads under the contention clock: on how many CPUs at once, on which machine, and the metrics.

One boot records the accesses of as many threads as the largest number of CPUs; runs on fewer CPUs are
replayed from the first threads' accesses. docs/design/contention.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from workloads.errors import BadParam, OutputUnreadable
from workloads.machines import check_fits, described_machine
from workloads.metric import Metric
from workloads.param import Param, ParamValue
from workloads.readings import Iteration, Object, iterations_of

MOST_CPUS = 64
# With this, a kernel of 64 CPUs leaves enough for a workload.
LEAST_MIB = 2048
CPUS = Param(
    "cpus",
    "int-list",
    (1, 2, 4, 8),
    "numbers of CPUs that do the same at once, each measured separately",
    1,
    MOST_CPUS,
)
MACHINE = Param(
    "machine",
    "machine",
    "one-socket",
    "the machine model: a name, or numbers that replace those of a named machine",
)
PARAMS: Mapping[str, Param] = {param.name: param for param in (CPUS, MACHINE)}
THREADS = "threads"
"""The name of the number of CPUs in programs and in parameters of workloads."""
OPERATIONS = "operations"
"""The number of operations of all threads in an iteration, as the harness prints it."""
# The difference between recordings of one kernel.
_MARGIN = 0.02


@dataclass(frozen=True, slots=True)
class Contending:
    """The settings of a workload under the contention clock.

    operation: a word for what its threads repeat. params: its own defaults of parameters: few operations, because
    each access is recorded.
    """

    operation: str
    params: Mapping[str, object]


def most_cpus(params: Mapping[str, object]) -> int:
    """Return how many threads are recorded. Raises BadParam."""
    return max(cpus_of(params))


def cpus_of(params: Mapping[str, object]) -> tuple[int, ...]:
    """Return the numbers of CPUs that a case asks for. Raises BadParam for none, or one twice."""
    cpus = CPUS.read(params.get(CPUS.name, CPUS.default))
    return cpus if isinstance(cpus, tuple) else ()


def metrics(operation: str) -> tuple[Metric, ...]:
    """Return the metrics of each number of CPUs."""
    return (
        Metric(
            f"cycles_per_{operation}", "cycles", "lower", _MARGIN, primary=True, each=CPUS.name,
            help="of one CPU's time, including waiting for others, on the requested machine model",
        ),
        Metric(
            "slowdown", "×", "lower", _MARGIN, primary=False, each=CPUS.name,
            help="cycles relative to the same CPUs without contention",
        ),
        Metric(
            "waiting", "%", "lower", _MARGIN, primary=False, each=CPUS.name,
            help="share of all cycles that CPUs waited for another's cache line or lock",
        ),
    )  # fmt: skip


def filled(params: Mapping[str, object]) -> dict[str, object]:
    """Return parameters with as many threads as the largest number of CPUs. Raises BadParam."""
    return {**params, THREADS: most_cpus(params)}


def check_machine(params: Mapping[str, object]) -> None:
    """Raise BadParam for more CPUs than the machine has."""
    check_fits(described_machine(params.get(MACHINE.name, MACHINE.default)), most_cpus(params))


def check_threads(params: Mapping[str, ParamValue]) -> None:
    """Raise BadParam unless there are as many threads as CPUs."""
    if params.get(THREADS, most := most_cpus(params)) != most:
        raise BadParam(
            f"threads = {params[THREADS]} cannot be used with the contention clock, which gives each thread a CPU of its own; "
            f"set cpus = [{params[THREADS]}] instead"
        )


def counted(objects: Sequence[Object]) -> tuple[Iteration, ...]:
    """Return iterations whose only value is the number of operations. Raises OutputUnreadable."""
    counts = [{**item, "values": {OPERATIONS: item.get(OPERATIONS)}} for item in objects]
    iterations = iterations_of(counts)
    for iteration in iterations:
        if iteration.values[OPERATIONS] < 1:
            raise OutputUnreadable(f"iteration {iteration.index} did nothing that could be replayed")
    if all(iteration.warmup for iteration in iterations):
        raise OutputUnreadable("no iteration was recorded")
    return iterations
