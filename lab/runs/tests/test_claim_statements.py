# SPDX-License-Identifier: GPL-2.0-or-later
"""The cost of a claim: its statements, and the rows that PostgreSQL reads for it. With KPERFLAB_TEST_DATABASE=postgres."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from lab.leases.prepared import run_prepared
from lab.models import Build, Experiment, Run, Target
from lab.models.states import Outcome
from lab.runs.claiming import _build_claim, _run_claim, claim_next_build, claim_next_run
from lab.runs.order import next_build, next_run
from lab.runs.record import RunRecord, record_run
from lab.tests.factories import ME, finish_builds, make_grid, make_user

pytestmark = pytest.mark.django_db

# Ten experiments of four submitters.
EXPERIMENTS, WAITING = 10, 100_000
# A claim looks at the last 200 boots, and of each experiment at a few rows.
MOST_ROWS = 1000
on_postgres = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="SQLite claims in steps: it has one writer"
)


def crowd(group: str = "") -> None:
    """Experiments of several submitters on one target, or on two of a group."""
    targets = [Target.objects.create(name=name, group=group) for name in ("one", "two")]
    for number in range(EXPERIMENTS):
        experiment = make_grid(blocks=3)
        submitter = make_user(f"user{number}")
        Experiment.objects.filter(pk=experiment.pk).update(
            target=targets[0], group=group, submitter=submitter
        )
        finish_builds(experiment)


@on_postgres
@pytest.mark.parametrize("group", ["", "rack"])
def test_a_claim_of_a_boot_is_one_statement_and_the_begin_of_an_experiment_one_more(group: str) -> None:
    crowd(group)
    Experiment.objects.update(state="queued")
    counts = []
    for _ in range(2 * EXPERIMENTS):
        expected = next_run(target="one")
        with CaptureQueriesContext(connection) as statements:
            claim = claim_next_run(target="one", by=ME)
        assert claim
        # The order of pages and of claims is one.
        assert claim.id == expected
        counts.append(len(statements))
        Experiment.objects.filter(runs=claim.id).update(priority=-len(counts))
        assert record_run(claim, RunRecord(Outcome.FINISHED))
    assert counts == [2] * EXPERIMENTS + [1] * EXPERIMENTS


@on_postgres
def test_a_claim_of_a_build_is_one_statement() -> None:
    experiment = make_grid(switches=(("p",), ("q",)))
    assert claim_next_build(by=ME)
    with CaptureQueriesContext(connection) as statements:
        assert claim_next_build(by=ME, queue="build.x86_64.gcc")
    assert len(statements) == 1
    assert Build.objects.filter(variants__experiment=experiment, state="building").count() == 2


@on_postgres
@pytest.mark.parametrize("group", ["", "rack"])
def test_a_claim_reads_few_rows_where_100_000_boots_wait(group: str) -> None:
    crowd(group)
    columns = ", ".join(
        f'"{field.column}"' for field in Run._meta.fields if field.column not in ("id", "block", "position")
    )
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO lab_run (block, position, {columns}) SELECT n + 3, 2 * n + 6 + position, {columns}"
            " FROM lab_run, generate_series(0, %s) n WHERE block = 0",
            [WAITING // EXPERIMENTS // 2],
        )
        cursor.execute("ANALYZE lab_run")
    assert Run.objects.filter(state="queued").count() >= WAITING
    rows = _rows_read(_run_claim(False), {"target": "one", "by": ME, "token": "t" * 32, "lease": 15.0})
    assert Run.objects.filter(state="running").count() == 1
    assert 0 < rows < MOST_ROWS


@on_postgres
def test_a_claim_reads_few_rows_where_100_000_builds_wait() -> None:
    experiments = [make_grid(blocks=1) for _ in range(EXPERIMENTS)]
    with connection.cursor() as cursor:
        columns = ", ".join(
            f'"{field.column}"' for field in Build._meta.fields if field.column not in ("id", "inputs")
        )
        cursor.execute(
            f"INSERT INTO lab_build (inputs, {columns}) SELECT n::text, {columns}"
            " FROM (SELECT * FROM lab_build LIMIT 1) b, generate_series(1, %s) n",
            [WAITING],
        )
        cursor.execute("ANALYZE lab_build")
    rows = _rows_read(
        _build_claim(True, False), {"queue": "build.x86_64.gcc", "by": ME, "token": "t" * 32, "lease": 15.0}
    )
    assert Build.objects.get(state="building").variants.get().experiment_id == experiments[0].pk
    assert 0 < rows < MOST_ROWS


@on_postgres
def test_a_claim_of_a_build_reads_few_rows_where_many_experiments_are_open() -> None:
    users = [make_user(f"user{number}") for number in range(4)]
    sample = make_grid(blocks=1)
    columns = ", ".join(f'"{field.column}"' for field in Experiment._meta.fields if field.column != "id")
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO lab_experiment ({columns}) SELECT {columns}"
            " FROM lab_experiment, generate_series(1, 5000) n WHERE id = %s",
            [sample.pk],
        )
        cursor.execute("UPDATE lab_experiment SET submitter_id = %s + id %% 4", [users[0].pk])
        cursor.execute("ANALYZE lab_experiment")
    assert [user.pk - users[0].pk for user in users] == [0, 1, 2, 3]
    Experiment.objects.filter(pk=sample.pk).update(priority=5)
    rows = _rows_read(
        _build_claim(True, False), {"queue": "build.x86_64.gcc", "by": ME, "token": "t" * 32, "lease": 15.0}
    )
    assert Build.objects.get(state="building").variants.get().experiment_id == sample.pk
    assert 0 < rows < MOST_ROWS


@on_postgres
def test_builds_are_claimed_in_the_order_that_pages_show() -> None:
    users = [make_user(f"user{number}") for number in range(3)]
    for number in range(2 * EXPERIMENTS):
        experiment = make_grid(blocks=1)
        priority = (0, 10)[number % 5 == 4]
        Experiment.objects.filter(pk=experiment.pk).update(submitter=users[number % 3], priority=priority)
    submitters = []
    while (expected := next_build(queue="build.x86_64.gcc")) is not None:
        claim = claim_next_build(by=ME, queue="build.x86_64.gcc")
        assert claim
        assert claim.id == expected
        first = Experiment.objects.filter(variants__build=claim.id).order_by("pk")[0]
        submitters.append((first.priority, first.submitter_id))
    assert [priority for priority, _ in submitters] == sorted((p for p, _ in submitters), reverse=True)
    # Everybody's turn comes in turns.
    assert len({who for _, who in submitters[:3]}) == 3


def _rows_read(statement: str, values: dict[str, Any]) -> float:
    """Run a statement; return how many rows its plan read from tables and indexes, those it then left out among them."""
    ((plan,),) = run_prepared(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", values)
    (top,) = plan if isinstance(plan, list) else json.loads(plan)
    return _read(top["Plan"])


def _read(node: dict[str, Any]) -> float:
    passed = sum(number for key, number in node.items() if key.startswith("Rows Removed by"))
    own = node["Actual Loops"] * (node["Actual Rows"] + passed) if "Scan" in node["Node Type"] else 0
    return own + sum(map(_read, node.get("Plans", ())))


@on_postgres
@pytest.mark.parametrize("error", [psycopg.errors.DeadlockDetected, psycopg.errors.AdminShutdown])
def test_a_claim_that_ends_in_a_deadlock_takes_nothing(
    db: None, monkeypatch: pytest.MonkeyPatch, error: type[psycopg.Error]
) -> None:
    make_grid()

    def refuse(*args: Any) -> None:
        raise OperationalError("ended") from error()

    monkeypatch.setattr("lab.runs.claiming.run_prepared", refuse)
    if error is psycopg.errors.DeadlockDetected:
        assert claim_next_run(target="guest", by=ME) is None
    else:
        with pytest.raises(OperationalError):
            claim_next_run(target="guest", by=ME)
