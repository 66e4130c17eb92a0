# SPDX-License-Identifier: GPL-2.0-or-later
"""Repeatability of finished experiments: the spread between boots of one kernel, and false alarms among them.

    python -m bench.repeat [--boots N] EXPERIMENT...

The base and the base once more are one kernel. For the second table each kernel's boots, in the order they ran, are
cut into groups of N; every two groups of a kernel are compared as a base and a patch would be, without adjustment for
the number of metrics. Two such comparisons may share a group, so they are not independent.
"""

import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Annotated, Any

import typer

import workers.app  # noqa: F401  makes Django ready before lab is imported
from bench import command
from lab.models import Case, Sample
from lab.models.states import Purpose, Role, RunState
from lab.statistics.arms import Arm, boot_number
from lab.statistics.estimate import estimate
from lab.statistics.verdict import judge

# By case, kernel and metric: the boots in the order they ran, each with its iterations without warm-up.
Boots = Mapping[tuple[str, str, str], list[tuple[float, ...]]]


def main(
    experiments: Annotated[list[int], typer.Argument(metavar="EXPERIMENT")],
    size: Annotated[int, typer.Option("--boots", help="boots in a group")] = 3,
) -> int:
    """Print both tables."""
    boots, metrics = read(experiments)
    if not boots:
        print("these experiments have no counted boots of a primary metric", file=sys.stderr)
        return 1
    for line in (*spread(boots), "", *false_alarms(boots, metrics, size)):
        print(line)
    return 0


def read(numbers: Sequence[int]) -> tuple[Boots, dict[str, dict[str, Any]]]:
    """Return the counted boots of the experiments' primary metrics, and those metrics by name."""
    boots: dict[tuple[str, str, str], list[tuple[float, ...]]] = {}
    metrics: dict[str, dict[str, Any]] = {}
    for case in Case.objects.filter(experiment__in=numbers).order_by("pk"):
        primary = {metric["name"]: metric for metric in case.metrics if metric["primary"]}
        metrics |= primary
        counted = {"purpose": Purpose.MEASURED, "state": RunState.DONE, "invalid": []}
        samples = Sample.objects.filter(
            run__case=case,
            warmup=False,
            metric__in=primary,
            **{f"run__{key}": to for key, to in counted.items()},
        )
        values: dict[tuple[str, str, int], list[float]] = defaultdict(list)
        rows = samples.order_by("run__started_at", "run", "iteration", "pk")
        for metric, run, role, name, value in rows.values_list(
            "metric", "run", "run__variant__role", "run__variant__name", "value"
        ):
            kernel = "base" if role in {Role.BASE, Role.AA} else name
            values[kernel, metric, run].append(value)
        for (kernel, metric, _), iterations in values.items():
            boots.setdefault((str(case), kernel, metric), []).append(tuple(iterations))
    return boots, metrics


def spread(boots: Boots) -> Iterator[str]:
    """Yield a line for each case, kernel and metric: its boots' numbers and how far they lie apart."""
    yield f"{'case':44} {'kernel':16} {'metric':24} {'boots':>5} {'median':>12} {'lowest':>8} {'highest':>8} {'CV':>7}"
    for (case, kernel, metric), each in sorted(boots.items()):
        numbers = [boot_number(iterations) for iterations in each]
        middle = statistics.median(numbers)
        if middle == 0 or len(numbers) < 2:
            continue
        yield (
            f"{case[:44]:44} {kernel[:16]:16} {metric[:24]:24} {len(numbers):5} {middle:12,.4g} {min(numbers) / middle - 1:+8.1%} "
            f"{max(numbers) / middle - 1:+8.1%} {statistics.stdev(numbers) / statistics.mean(numbers):7.2%}"
        )


def false_alarms(boots: Boots, metrics: Mapping[str, Mapping[str, Any]], size: int) -> Iterator[str]:
    """Yield a line for each case and metric: comparisons of one kernel with itself, and those called a change."""
    yield f"{'case':44} {'metric':24} {'compared':>9} {'called':>7}   groups of {size} boots of one kernel"
    tried: dict[tuple[str, str], list[str]] = defaultdict(list)
    for (case, _, metric), each in sorted(boots.items()):
        groups = [each[at : at + size] for at in range(0, len(each) - size + 1, size)]
        for first, other in combinations(groups, 2):
            shift = estimate([arm("one", first)], arm("other", other))
            asked = metrics[metric]
            verdict = judge(shift, better=asked["better"], margin=asked.get("margin", 0.0))
            tried[case, metric].append(verdict.word)
    for (case, metric), words in tried.items():
        called = sum(word in {"regression", "improvement"} for word in words)
        yield f"{case[:44]:44} {metric[:24]:24} {len(words):9} {called:7}"
    every = [word for words in tried.values() for word in words]
    called = sum(word in {"regression", "improvement"} for word in every)
    yield f"{'together':69} {len(every):9} {called:7}"


def arm(name: str, boots: Sequence[tuple[float, ...]]) -> Arm:
    """Return boots as an arm, a block each."""
    return Arm(name, dict(enumerate(boots)))


if __name__ == "__main__":
    command.run(main)
