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
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from bench.faults.lab import GROUP, Lab, LabSetup, running

# What one run may cost beside its boot: whichever is larger.
GOAL_SHARE, GOAL_S = 0.02, 0.5
_PATIENCE_S = 3600.0


def main(targets: str = "1,4,16", runs: int = 200, queue: int = 1000, boot: float = 2.0) -> None:
    """Measure what the lab costs beside each boot. runs: boots queued for each number of targets; queue: for the last line."""
    counts = [int(word) for word in targets.split(",")]
    home = Path(tempfile.mkdtemp(prefix="kperflab-throughput-", dir="/var/tmp"))
    home.chmod(0o755)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    print(f"overhead of a run, seconds beyond its boot of {boot:g} s")
    print(
        f"{'targets':>8}{'runs':>8}{'wall':>8}{'a run':>10}{'first tenth':>13}{'last tenth':>12}{'share':>9}  goal"
    )
    try:
        with running(
            LabSetup(home, targets=max(counts), boot_s=boot, lease_s=15, machine=False), port
        ) as lab:
            for count in counts:
                _measure(lab, count, runs)
            if queue > runs:
                _measure(lab, max(counts), queue)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _measure(lab: Lab, targets: int, runs: int) -> None:
    """Queue the boots of one experiment while its targets are disabled, then let so many of them begin; print a line."""
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
    _print_line(list(over.values_list("target__name", "started_at", "finished_at")), lab.setup.boot_s)


def _print_line(rows: list[Any], boot_s: float) -> None:
    """Print the overhead of a run, median over targets: of all runs, the first tenth and the last tenth.

    rows: target, begin and end of each, in the order of their begin.
    """
    by_target: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for name, started, finished in rows:
        by_target[name].append((started.timestamp(), finished.timestamp()))

    def overhead(part: slice) -> float:
        spans = [boots[part] for boots in by_target.values()]
        return statistics.median((some[-1][1] - some[0][0]) / len(some) - boot_s for some in spans)

    wall_s = (max(finished for *_, finished in rows) - min(started for _, started, _ in rows)).total_seconds()
    tenth = max(2, len(rows) // len(by_target) // 10)
    whole, first, last = (overhead(part) for part in (slice(None), slice(tenth), slice(-tenth, None)))
    goal_s = max(GOAL_SHARE * boot_s, GOAL_S)
    print(
        f"{len(by_target):>8}{len(rows):>8}{wall_s:>8.0f}{whole:>10.3f}{first:>13.3f}{last:>12.3f}{whole / boot_s:>9.1%}"
        f"  ≤ {goal_s:g} s: {'met' if whole <= goal_s else 'missed'}",
        flush=True,
    )
