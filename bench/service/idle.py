# SPDX-License-Identifier: GPL-2.0-or-later
"""The cost of idle workers: statements a second to PostgreSQL, with what share of a processor, for so many simulated in one process.

Each does in turn what a worker's own thread does every few seconds (workers/presence.py): its report, and whatever recovers
the work of dead workers. Nothing waits, and nothing is under way.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lab.tests.postgres import start_cluster

COUNTS = (1, 10, 100, 1000)
ROUNDS = 3


def main() -> None:
    """Start a PostgreSQL and print a table."""
    os.environ["KPERFLAB_DATABASE"] = start_cluster()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lab.settings")
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connection

    from lab.models import Target
    from workers.presence import REPORT_S

    call_command("migrate", verbosity=0)
    # Targets of one group, none of which has anything to boot.
    Target.objects.bulk_create(Target(name=f"t{number}", group="rack") for number in range(max(COUNTS)))
    statements = 0

    def counted(execute: Callable[..., Any], *arguments: Any) -> Any:
        nonlocal statements
        statements += 1
        return execute(*arguments)

    print(f"{'idle workers':>12} {'statements /s':>14} {'of a processor':>15}")
    with connection.execute_wrapper(counted):
        for count in COUNTS:
            _turn(count)
            statements, used = 0, _server_s()
            started = time.monotonic()
            for number in range(ROUNDS):
                # One round is one report of each; what recovers the dead is due in each again.
                time.sleep(max(0.0, started + number * REPORT_S - time.monotonic()))
                _turn(count)
            each_s = ROUNDS * REPORT_S
            share = (_server_s() - used) / each_s
            print(f"{count:>12} {statements / each_s:>14.1f} {share:>15.1%}", flush=True)


def _turn(count: int) -> None:
    from lab.leases.version import code_version
    from lab.runs.workers import WorkerReport, report_worker
    from workers.fleet import keep_going
    from workers.presence import KEEP_GOING, KEPT_GOING_S
    from workers.readiness import why_idle

    for number in range(count):
        answer = report_worker(
            WorkerReport(
                name=f"host{number}:1:1",
                host=f"host{number}",
                queues=[f"target.t{number}"],
                version=code_version(),
                disk_free=1,
                disk_total=2,
                idle_reason=why_idle(builds=False, lab=""),
            ),
            chore=KEEP_GOING,
            within_s=KEPT_GOING_S,
        )
        keep_going(answer.done)


def _server_s() -> float:
    """Seconds of a processor that the server of our connection has used."""
    from django.db import connection

    connection.ensure_connection()
    times = Path(f"/proc/{connection.connection.info.backend_pid}/schedstat").read_text()
    return int(times.split()[0]) / 1e9
