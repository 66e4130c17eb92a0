# SPDX-License-Identifier: GPL-2.0-or-later
"""Claims a second on PostgreSQL: ours, with order, fair share and lease, beside a bare SKIP LOCKED.

Boots of single targets and of a group, builds, and chores. The client processes are the same for both: each claims and
finishes pieces for some seconds of ours, then of the bare, in turns; both prepare their statements. A cluster of its own,
fsync on; both tables hold the same number of waiting rows. Then the milliseconds of a claim as more waits.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import TYPE_CHECKING

from lab.tests.postgres import start_cluster

if TYPE_CHECKING:
    from lab.models import User

CLIENTS = (1, 4, 16, 64)
WAITING = (100, 1000, 10_000, 100_000)
KINDS = ("boots", "group", "builds", "chores")
TURNS, TURN_S = 3, 3.0
# An experiment has so many boots or builds at most; each of them is one of SUBMITTERS'.
BOOTS, BUILDS, SUBMITTERS = 1000, 100, 4
CHORES, ENDED = 1000, 5000
BARE = """
UPDATE bare SET state = 'running', token = %(token)s, lease = now() + interval '15 s' WHERE id = (
  SELECT id FROM bare WHERE state = 'queued' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id
"""
FINISH = "UPDATE {} SET state = 'done', token = ''{} WHERE id = %(id)s AND token = %(token)s"
Claim = Callable[[], bool]


def main(waiting: int = WAITING[-1], kinds: str = ",".join(KINDS)) -> None:
    """Measure claims a second, and the milliseconds of one as more waits."""
    os.environ["KPERFLAB_DATABASE"] = start_cluster()
    _prepare()
    print(f"{waiting} wait; pieces a second, median of {TURNS} turns of {TURN_S:g} s each")
    print(f"{'':>8} {'clients':>8} {'ours /s':>10} {'bare /s':>10} {'ours : bare':>12}")
    for kind in kinds.split(","):
        for clients in CLIENTS:
            _fill(kind, clients, waiting)
            ours, bare = _rates(kind, clients)
            print(f"{kind:>8} {clients:>8} {ours:>10.0f} {bare:>10.0f} {ours / bare:>12.2f}", flush=True)
    print(f"\n{'':>8}" + "".join(f"{number:>10}" for number in WAITING) + "  wait: ms a claim, one client")
    for kind in kinds.split(","):
        print(f"{kind:>8}" + "".join(f"{_claim_ms(kind, number):>10.2f}" for number in WAITING), flush=True)


def _prepare() -> None:
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lab.settings")
    django.setup()


def _fill(kind: str, clients: int, waiting: int) -> None:
    """Fill an empty lab with so many waiting pieces for so many targets, and as many of the bare peer."""
    from django.core.management import call_command
    from django.db import connection

    from lab.tests.factories import make_user

    call_command("migrate", verbosity=0)
    with connection.cursor() as cursor:
        cursor.execute(
            "TRUNCATE lab_experiment, lab_target, lab_build, lab_tree, lab_user, lab_chore CASCADE"
        )
        cursor.execute("DROP TABLE IF EXISTS bare")
        cursor.execute("CREATE TABLE bare (id serial PRIMARY KEY, state text, token text, lease timestamptz)")
        cursor.execute("INSERT INTO bare (state) SELECT 'queued' FROM generate_series(1, %s)", [waiting])
        cursor.execute("CREATE INDEX ON bare (state, id)")
    users = [make_user(f"u{number}") for number in range(SUBMITTERS)]
    if kind == "builds":
        _fill_builds(waiting, users)
    elif kind != "chores":
        _fill_boots(clients, waiting, users, "rack" if kind == "group" else "")
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


def _fill_boots(clients: int, waiting: int, users: list[User], group: str) -> None:
    """Experiments of four variants, of different submitters, on targets of their own or all on one group."""
    from django.db import connection

    from lab.models import Experiment, Run, Target
    from lab.tests.factories import finish_builds, make_grid

    targets = [Target.objects.create(name=f"t{number}", group=group) for number in range(clients)]
    count = max(SUBMITTERS, clients, waiting // BOOTS)
    for number in range(count):
        experiment = make_grid(blocks=1, switches=(("p",), ("q",), ("r",)))
        Experiment.objects.filter(pk=experiment.pk).update(
            target=targets[number % clients], group=group, submitter=users[number // clients % SUBMITTERS]
        )
        finish_builds(experiment)
    # One block each is there; the others are its copies, and so is what has ended in the last days.
    with connection.cursor() as cursor:
        columns = [
            field.column for field in Run._meta.fields if field.column not in ("id", "block", "position")
        ]
        listed = ", ".join(f'"{name}"' for name in columns)
        copy = (
            f"INSERT INTO lab_run (block, position, {listed})"
            f" SELECT n, n * 4 + position, {listed} FROM lab_run, generate_series(%s, %s) n"
            " WHERE block = 0 AND experiment_id %% %s = 0"
        )
        blocks = max(1, waiting // count // 4)
        cursor.execute(copy, [1, blocks - 1, 1])
        cursor.execute(copy, [blocks, blocks + ENDED // 4, count])
        cursor.execute(
            "UPDATE lab_run SET state = 'done', started_at = now() - block * interval '1 minute',"
            " finished_at = now() - (block - 0.5) * interval '1 minute' WHERE block >= %s",
            [blocks],
        )


def _fill_builds(waiting: int, users: list[User]) -> None:
    from datetime import timedelta

    from django.utils import timezone

    from lab.models import Build, Variant
    from lab.tests.factories import make_build, make_experiment

    sample = make_build("sample", state="failed")
    now = timezone.now()
    Build.objects.bulk_create(
        Build(
            inputs=f"ended/{n}",
            tree_id="t",
            commit="c",
            request=sample.request,
            state="built",
            started_at=now - timedelta(minutes=n + 2),
            finished_at=now - timedelta(minutes=n + 1),
        )
        for n in range(ENDED)
    )
    for number in range(max(SUBMITTERS, waiting // BUILDS)):
        experiment = make_experiment(submitter=users[number % SUBMITTERS])
        each = range(min(BUILDS, waiting // SUBMITTERS))
        builds = Build.objects.bulk_create(
            Build(inputs=f"{number}/{place}", tree_id="t", commit="c", request=sample.request)
            for place in each
        )
        Variant.objects.bulk_create(
            Variant(experiment=experiment, position=place, name=f"v{place}", build=builds[place])
            for place in each
        )


def _rates(kind: str, clients: int) -> tuple[float, float]:
    """Return the pieces a second of ours and of the bare that so many processes claim and finish together."""
    from lab.runs.settle import note_builds_over

    command = [sys.executable, "-m", "bench.service.claims", kind]
    running = [
        subprocess.Popen([*command, str(n)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for n in range(clients)
    ]
    for client in running:
        _line(client)
    rates: dict[str, list[float]] = {"ours": [], "bare": []}
    for which in ("ours", "bare") * TURNS:
        # As each record of a build does; what recording takes is not measured here.
        note_builds_over()
        for client in running:
            assert client.stdin
            print(which, file=client.stdin, flush=True)
        answers = [_line(client).split() for client in running]
        rates[which].append(sum(int(count) / float(took) for count, took in answers))
    for client in running:
        client.communicate()
    return median(rates["ours"]), median(rates["bare"])


def _line(client: subprocess.Popen[str]) -> str:
    assert client.stdout
    line = client.stdout.readline()
    if not line:
        raise SystemExit(f"a client failed with {client.wait()}")
    return line


def _client(kind: str, number: int) -> None:
    """Claim and finish for a turn whenever a line names whose; print how many pieces and seconds that were."""
    ours, bare = _ours(kind, number), _bare()
    for _ in range(10):
        ours(), bare()
    print("ready", flush=True)
    for line in sys.stdin:
        claim, count, started = ours if line.strip() == "ours" else bare, 0, time.monotonic()
        while (took := time.monotonic() - started) < TURN_S:
            if not claim():
                raise SystemExit(f"nothing is left to claim after {count}")
            count += 1
        print(count, took, flush=True)


def _ours(kind: str, number: int) -> Claim:
    from lab.leases.prepared import run_prepared
    from lab.leases.process import worker_identity
    from lab.leases.upkeep import begin_chore, end_chore
    from lab.runs.claiming import claim_next_build, claim_next_run

    by, turns = worker_identity(), iter(range(sys.maxsize))

    def chore() -> bool:
        name = f"{number}/{next(turns) % CHORES}"
        begun = begin_chore(name, 0.0)
        end_chore(name, {})
        return begun

    def claim() -> bool:
        got = (
            claim_next_build(by=by, queue="build.x86_64.gcc")
            if kind == "builds"
            else claim_next_run(target=f"t{number}", by=by)
        )
        if got is None:
            return False
        # What recording takes is another matter; here the target has only to be free again.
        run_prepared(
            FINISH.format(f"lab_{got.kind}", ", finished_at = now()"), {"id": got.id, "token": got.token}
        )
        return True

    return chore if kind == "chores" else claim


def _bare() -> Claim:
    from lab.leases.prepared import run_prepared

    def claim() -> bool:
        token = os.urandom(16).hex()
        rows = run_prepared(BARE, {"token": token})
        for (row,) in rows:
            run_prepared(FINISH.format("bare", ""), {"id": row, "token": token})
        return bool(rows)

    return claim


def _claim_ms(kind: str, waiting: int) -> float:
    """Median milliseconds of a claim and its finish while so many wait."""
    _fill(kind, 1, waiting)
    claim, took = _ours(kind, 0), []
    for _ in range(20):
        started = time.monotonic()
        claim()
        took.append(1000 * (time.monotonic() - started))
    return median(took[5:])


if __name__ == "__main__":
    _prepare()
    _client(sys.argv[1], int(sys.argv[2]))
