# SPDX-License-Identifier: GPL-2.0-or-later
"""The cost of the lab itself: wall time of a run beyond its boot and workload, over a live service.

Fake targets whose boots take a known time work off a queue, 1, 4 and 16 of them side by side. Overhead is the time from
one target's first claim to its last record, for each run, less the boot: claiming, waking, packing the guest's files,
reading its answers, recording. It is reported for the first and for the last tenth of the queue too: a queue whose
length mattered would show there.
"""

import shutil
import socket
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.faults.lab import GROUP, Lab, Wishes, running

# The table is read in logs, too, where nobody says how wide they are.
console = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 140)
# What one run may cost beside its boot: whichever is larger.
GOAL_SHARE, GOAL_S = 0.02, 0.5
_PATIENCE_S = 3600.0


@dataclass(frozen=True, slots=True)
class Spent:
    """Overhead of a run in seconds: median over targets, of all runs, the first tenth and the last tenth."""

    targets: int
    runs: int
    boot_s: float
    wall_s: float
    overhead_s: float
    first_s: float
    last_s: float

    @property
    def goal_s(self) -> float:
        """Return the goal in seconds."""
        return max(GOAL_SHARE * self.boot_s, GOAL_S)


def main(counts: tuple[int, ...] = (1, 4, 16), runs: int = 200, queue: int = 1000, boot: float = 2.0) -> None:
    """Measure and print. runs: boots queued for each number of targets; queue: for the last line; boot: seconds."""
    home = Path(tempfile.mkdtemp(prefix="kperflab-throughput-", dir="/var/tmp"))
    home.chmod(0o755)
    try:
        with running(
            Wishes(home, targets=max(counts), boot_s=boot, lease_s=15, machine=False), _free_port()
        ) as lab:
            found = [_measure(lab, count, runs) for count in counts]
            if queue > runs:
                found.append(_measure(lab, max(counts), queue))
    finally:
        shutil.rmtree(home, ignore_errors=True)
    _print(found)


def _measure(lab: Lab, targets: int, runs: int) -> Spent:
    """Queue the boots of one experiment while its targets are disabled, then let so many of them begin."""
    from bench.faults.load import Load
    from lab.models import Experiment, Run, Target

    Target.objects.filter(group=GROUP).update(enabled=False)
    names = lab.targets[:targets]
    Target.objects.filter(name=names[0]).update(enabled=True)
    load = Load(lab.home, (GROUP,), seed=targets * 10_000 + runs, boots=runs // 2)
    experiment = load.submit_plain()
    while Experiment.objects.get(pk=experiment).variants.filter(state="planned").exists():
        time.sleep(0.1)
    Target.objects.filter(name__in=names).update(enabled=True)
    end = time.monotonic() + _PATIENCE_S
    while Experiment.objects.get(pk=experiment).state in {"queued", "running"} and time.monotonic() < end:
        time.sleep(0.2)
    over = Run.objects.filter(experiment=experiment, state="done").order_by("started_at")
    if over.count() != runs:
        raise RuntimeError(f"{over.count()} of {runs} boots were finished: the figures say nothing")
    return _spent(
        targets, list(over.values_list("target__name", "started_at", "finished_at")), lab.wishes.boot_s
    )


def _spent(targets: int, rows: list[tuple[str, object, object]], boot_s: float) -> Spent:
    each: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for name, started, finished in rows:
        each[name].append((started.timestamp(), finished.timestamp()))  # type: ignore[attr-defined]
    begun = min(span[0] for spans in each.values() for span in spans)
    ended = max(span[1] for spans in each.values() for span in spans)

    def overhead(part: slice) -> float:
        costs = []
        for spans in each.values():
            some = spans[part]
            costs.append((some[-1][1] - some[0][0]) / len(some) - boot_s)
        return statistics.median(costs)

    tenth = max(2, len(rows) // targets // 10)
    whole = overhead(slice(None))
    return Spent(
        targets,
        len(rows),
        boot_s,
        ended - begun,
        whole,
        overhead(slice(tenth)),
        overhead(slice(-tenth, None)),
    )


def _print(found: list[Spent]) -> None:
    table = Table(title="overhead of a run, seconds beyond its boot")
    for title in (
        "targets",
        "runs queued",
        "boot, s",
        "wall, s",
        "a run",
        "first tenth",
        "last tenth",
        "share",
        "goal",
    ):
        table.add_column(title, justify="right")
    for one in found:
        good = "met" if one.overhead_s <= one.goal_s else "missed"
        table.add_row(
            str(one.targets),
            str(one.runs),
            f"{one.boot_s:g}",
            f"{one.wall_s:.0f}",
            f"{one.overhead_s:.3f}",
            f"{one.first_s:.3f}",
            f"{one.last_s:.3f}",
            f"{one.overhead_s / one.boot_s:.1%}",
            f"≤ {one.goal_s:g} s: {good}",
        )
    console.print(table)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
