# SPDX-License-Identifier: GPL-2.0-or-later
"""Claims a second on PostgreSQL: ours, with order, fair share, lease and record, beside a bare SKIP LOCKED, in the same run.

Also what a claim takes while 100 to 1,000 boots wait. A cluster of its own, fsync on. CLIENTS processes, one target each.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable

from lab.tests.postgres import start_cluster

CLIENTS = (1, 4, 16)
LENGTHS = (100, 300, 1000)
PIECES = 160
BARE = """
UPDATE bare SET state = 'running', token = %s, lease = now() + interval '15 s' WHERE id = (
  SELECT id FROM bare WHERE state = 'queued' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id
"""


def main() -> None:
    """Start a PostgreSQL and print two tables."""
    os.environ["KPERFLAB_DATABASE"] = start_cluster()
    _prepare()
    print(f"{'clients':>8} {'ours /s':>10} {'SKIP LOCKED /s':>15} {'ours : bare':>12}")
    for clients in CLIENTS:
        ours, bare = _rate("ours", clients), _rate("bare", clients)
        print(f"{clients:>8} {ours:>10.0f} {bare:>15.0f} {ours / bare:>12.2f}")
    print(f"\n{'waiting':>8} {'ms a claim':>11} {'to the first':>13}")
    first = 0.0
    for length in LENGTHS:
        took = _claim_ms(length)
        first = first or took
        print(f"{length:>8} {took:>11.2f} {took / first:>13.2f}")


def _prepare() -> None:
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lab.settings")
    django.setup()


def _fill(clients: int, boots: int) -> None:
    """An empty lab with so many boots of one experiment on each client's target, in four variants."""
    from django.core.management import call_command
    from django.db import connection, transaction

    from lab.models import Experiment, Target
    from lab.tests.factories import finish_builds, make_grid

    call_command("migrate", verbosity=0)
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE lab_experiment, lab_target, lab_build, lab_tree CASCADE")
        cursor.execute("DROP TABLE IF EXISTS bare")
        cursor.execute("CREATE TABLE bare (id serial PRIMARY KEY, state text, token text, lease timestamptz)")
        cursor.execute(
            "INSERT INTO bare (state) SELECT 'queued' FROM generate_series(1, %s)", [clients * boots]
        )
        cursor.execute("CREATE INDEX ON bare (state, id)")
    with transaction.atomic():
        for number in range(clients):
            target = Target.objects.create(name=f"t{number}")
            experiment = make_grid(blocks=boots // 4, switches=(("p",), ("q",), ("r",)))
            Experiment.objects.filter(pk=experiment.pk).update(target=target)
            finish_builds(experiment)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def _rate(kind: str, clients: int) -> float:
    """Pieces a second that so many processes claim and finish together."""
    _fill(clients, PIECES // clients)
    command = [sys.executable, "-m", "bench.service.claims", kind]
    started = time.monotonic()
    running = [
        subprocess.Popen([*command, str(n)], stdout=subprocess.PIPE, text=True) for n in range(clients)
    ]
    spans = [tuple(map(float, one.communicate()[0].split())) for one in running]
    if any(one.returncode for one in running):
        raise SystemExit(f"a client of {kind} failed after {time.monotonic() - started:.0f} s")
    # Without the start of the interpreters: from the first claim to the last end.
    pieces = sum(span[2] for span in spans)
    return pieces / (max(span[1] for span in spans) - min(span[0] for span in spans))


def _client(kind: str, number: int) -> None:
    """Claim until nothing is left; prints when that began, ended, and how many it were."""
    claim = _ours(number) if kind == "ours" else _bare
    count, started = 0, time.monotonic()
    while claim():
        count += 1
    print(started, time.monotonic(), count)


def _ours(number: int) -> Callable[[], bool]:
    from lab.leases.process import worker_identity
    from lab.models.states import RunState, move
    from lab.runs.claiming import claim_next_run

    by = worker_identity()

    def claim() -> bool:
        from lab.models import Run

        got = claim_next_run(target=f"t{number}", by=by)
        # What recording takes is another matter; here the target has only to be free again.
        return got is not None and move(
            Run, got.id, RunState.RUNNING, RunState.DONE, held=got.token, token=""
        )

    return claim


def _bare() -> bool:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(BARE, [os.urandom(16).hex()])
        row = cursor.fetchone()
        if row is not None:
            cursor.execute("UPDATE bare SET state = 'done' WHERE id = %s", [row[0]])
    return row is not None


def _claim_ms(length: int) -> float:
    """Median milliseconds of a claim while so many boots wait."""
    from statistics import median

    _fill(1, length)
    claim, took = _ours(0), []
    for _ in range(20):
        started = time.monotonic()
        claim()
        took.append(1000 * (time.monotonic() - started))
    return median(took)


if __name__ == "__main__":
    _prepare()
    _client(sys.argv[1], int(sys.argv[2]))
