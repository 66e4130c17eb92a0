# SPDX-License-Identifier: GPL-2.0-or-later
"""The cost of a scrape of /metrics on PostgreSQL with a filled database and a busy last hour: milliseconds and queries.

    make bench-scrape, or python -m bench.scrape [--experiments 1000] [--rounds 50]

A cluster of its own. The last hour has 2,000 boots and 200 builds on 16 targets; 16 boots run, 320 wait, 20 workers live. "anew" is a
scrape more than five seconds after the last, for which database, Redis and the store are checked again; "at once" is one right after.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from lab.tests.postgres import start_cluster

TARGETS, BOOTS, BUILDS, WORKERS = 16, 2000, 200, 20


def main() -> None:
    """Fill, ask, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--experiments", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=50)
    given = parser.parse_args()
    os.environ["KPERFLAB_DATABASE"] = start_cluster()
    with tempfile.TemporaryDirectory(prefix="kperflab-scrape-") as folder:
        os.environ |= {"KPERFLAB_HOME": folder, "KPERFLAB_STORE": folder, "KPERFLAB_HOSTS": "testserver"}
        fill = [sys.executable, "-m", "bench.load_store", "--experiments", str(given.experiments)]
        subprocess.run([*fill, "--samples", str(300 * given.experiments)], check=True)
        _measure(given.rounds)


def _measure(rounds: int) -> None:
    # The home is named by now, so Django may read its settings.
    from django.test import Client

    import workers.app  # noqa: F401
    from lab.models import Experiment, Run
    from lab.operations import readiness
    from lab.storage import store_check as answer

    _make_busy()
    client = Client()

    def forget() -> None:
        readiness._last = None
        answer._asking._found = None

    print(
        f"{Experiment.objects.count():,} experiments, {Run.objects.count():,} boots, {BOOTS:,} of them in the last hour"
    )
    print(f"{'scrape':<10}{'p50 ms':>9}{'p95 ms':>9}{'CPU ms':>9}{'queries':>9}{'kB':>7}")
    for name, before in (("anew", forget), ("at once", lambda: None)):
        _tell(name, client, before, rounds)


def _make_busy() -> None:
    """A last hour, and work that is open, on every target."""
    from django.db import connection
    from django.utils import timezone

    from lab.models import Build, Run, Target, Worker
    from lab.models.states import RunState
    from lab.tests.factories import finish_builds, make_grid

    draw, now = random.Random(1), timezone.now()
    targets = [Target.objects.create(name=f"t{number}") for number in range(TARGETS)]
    runs, builds = list(Run.objects.order_by("-pk")[:BOOTS]), list(Build.objects.order_by("-pk")[:BUILDS])
    rows: list[Run | Build] = [*runs, *builds]
    for row in rows:
        row.finished_at = now - timedelta(minutes=draw.uniform(1, 50))
        row.started_at = row.finished_at - timedelta(seconds=draw.uniform(5, 60))
    for run in runs:
        run.target, run.steps = draw.choice(targets), {"boot": 2.0, "workload": 9.0, "collect": 0.4}
    Run.objects.bulk_update(runs, ["started_at", "finished_at", "target", "steps"], batch_size=500)
    Build.objects.bulk_update(builds, ["started_at", "finished_at"], batch_size=500)
    for target in targets:
        experiment = make_grid(blocks=11)
        type(experiment)._default_manager.filter(pk=experiment.pk).update(target=target, state="running")
        finish_builds(experiment)
        first = experiment.runs.order_by("position")[0]
        lease = now + timedelta(seconds=15)
        Run.objects.filter(pk=first.pk).update(
            state=RunState.RUNNING, target=target, started_at=now, lease_until=lease
        )
    Worker.objects.bulk_create(
        Worker(name=f"h{number}:1:1", host=f"h{number}", queues=[f"target.t{number % TARGETS}"])
        for number in range(WORKERS)
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def _tell(name: str, client: Any, before: Callable[[], None], rounds: int) -> None:
    from django.db import connection

    asked: list[str] = []

    def note(execute: Any, sql: str, *rest: Any) -> Any:
        asked.append(sql)
        return execute(sql, *rest)

    before()
    with connection.execute_wrapper(note):
        size = len(client.get("/metrics").content)
    took, busy = [], []
    for _ in range(rounds):
        before()
        began, used = time.perf_counter(), time.process_time()
        client.get("/metrics")
        took.append(1000 * (time.perf_counter() - began))
        busy.append(1000 * (time.process_time() - used))
    took.sort()
    busy.sort()
    p50, p95, cpu = took[rounds // 2], took[int(0.95 * rounds)], busy[rounds // 2]
    print(f"{name:<10}{p50:>9.1f}{p95:>9.1f}{cpu:>9.1f}{len(asked):>9}{size / 1000:>7.0f}", flush=True)


if __name__ == "__main__":
    main()
