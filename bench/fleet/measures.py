# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures of a service under a fleet: CPU seconds of each program, statements, Redis' operations, bytes, waits, and what was kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from redis import Redis

from bench.fleet.lab import Fleet, superuser
from kernels.processes.stats import family_of
from workers.service.supervising import Supervisor

# Of one moment, of what our own questions cost nothing is counted.
_OURS = "query NOT LIKE '%%pg_stat_statements%%' AND query NOT LIKE '%%pg_database_size%%' AND query NOT LIKE '%%pg_total_relation_size%%'"
_STATEMENTS = (
    f"SELECT coalesce(sum(calls), 0), coalesce(sum(total_exec_time), 0) FROM pg_stat_statements WHERE {_OURS}"
)
_TABLES = "SELECT relname::text, pg_total_relation_size(oid) FROM pg_class WHERE relkind = 'r' AND relname LIKE 'lab_%'"
_SLOWEST = f"""SELECT calls, total_exec_time / 1000, mean_exec_time, max_exec_time, query FROM pg_stat_statements
WHERE {_OURS} ORDER BY {{}} DESC LIMIT %s"""
# Seconds from the moment its kernels were there to a run's first claim; experiments: to the first claim, and in all.
_WAITS = """
WITH ready AS (
  SELECT e.id, e.priority, greatest(e.created_at, max(b.finished_at)) AS at FROM lab_experiment e
  JOIN lab_variant v ON v.experiment_id = e.id JOIN lab_build b ON b.id = v.build_id WHERE e.id > {} GROUP BY e.id),
first AS (
  SELECT y.priority, extract(epoch FROM min(r.started_at) - y.at) AS boot,
    extract(epoch FROM max(e.finished_at) - max(e.created_at)) AS whole
  FROM ready y JOIN lab_experiment e ON e.id = y.id JOIN lab_run r ON r.experiment_id = y.id AND r.started_at IS NOT NULL
  WHERE e.state = 'done' OR e.started_at IS NOT NULL GROUP BY y.id, y.priority, y.at)
SELECT priority, count(*), {} FROM first GROUP BY priority ORDER BY priority DESC"""
_SHARES = ", ".join(
    f"percentile_cont({share}) WITHIN GROUP (ORDER BY {what})"
    for what in ("boot", "whole")
    for share in (0.5, 0.95, 1)
)
# From a claim whose worker died at once to the moment the work was queued again, by the diary.
_TAKEOVERS = """SELECT extract(epoch FROM max(at) - min(at)) FROM diary.entry
WHERE kind = 'run' AND token = ANY(%s) GROUP BY token HAVING count(*) > 1"""

_HELD = """SELECT extract(epoch FROM sum(coalesce(ended, clock_timestamp()) - begun)) FROM (
  SELECT min(at) AS begun, CASE WHEN count(*) > 1 THEN max(at) END AS ended FROM diary.entry
  WHERE kind = 'run' AND token <> '' AND id > %s GROUP BY row, token) held"""


@dataclass(slots=True)
class Moment:
    """All counters at one moment. cpu_s: by program; redis: calls by command; bytes: of the database, by table."""

    cpu_s: dict[str, float] = field(default_factory=dict)
    statements: int = 0
    statements_ms: float = 0.0
    redis: dict[str, int] = field(default_factory=dict)
    database: int = 0
    tables: dict[str, int] = field(default_factory=dict)
    runs: int = 0
    experiments: int = 0

    def minus(self, other: Moment) -> Moment:
        """Return what was added since another moment."""
        return Moment(
            {name: round(value - other.cpu_s.get(name, 0.0), 2) for name, value in self.cpu_s.items()},
            self.statements - other.statements,
            self.statements_ms - other.statements_ms,
            {name: value - other.redis.get(name, 0) for name, value in self.redis.items()},
            self.database - other.database,
            {name: value - other.tables.get(name, 0) for name, value in self.tables.items()},
            self.runs - other.runs,
            self.experiments - other.experiments,
        )


@dataclass(frozen=True, slots=True)
class Marks:
    """The newest experiment and the newest line of the diary at one moment: what comes later is a replay's own."""

    experiment: int
    entry: int


def marks(fleet: Fleet) -> Marks:
    """Return them as they are now."""
    with superuser(fleet.place) as connection:
        row = _row(
            connection,
            "SELECT coalesce((SELECT max(id) FROM lab_experiment), 0), coalesce((SELECT max(id) FROM diary.entry), 0)",
        )
    return Marks(*row)


def look(fleet: Fleet, *, reset: bool = False) -> Moment:
    """Return the counters as they are now; with `reset` those of statements begin again, and are 0."""
    moment = Moment(cpu_s=_cpu(fleet), redis=_redis())
    with superuser(fleet.place) as connection:
        if reset:
            connection.execute("SELECT pg_stat_statements_reset()")
        calls, moment.statements_ms = _row(connection, _STATEMENTS)
        moment.statements = int(calls)
        moment.database = _row(connection, "SELECT pg_database_size(current_database())")[0]
        tables: list[Any] = connection.execute(_TABLES).fetchall()
        moment.tables = dict(tables)
        moment.runs = _row(connection, "SELECT count(*) FROM lab_run WHERE state IN ('done', 'failed')")[0]
        moment.experiments = _row(connection, "SELECT count(*) FROM lab_experiment")[0]
    return moment


def _row(connection: Any, text: str) -> Any:
    return connection.execute(text).fetchone()


def _cpu(fleet: Fleet) -> dict[str, float]:
    """Seconds of a processor of each program, with those of its processes that are there and that ended."""
    roots = {state.name: state.pid for state in Supervisor(fleet.place).states() if state.pid}
    roots |= {f"fleet {number}": farm.pid for number, farm in enumerate(fleet.farms)}
    return {name: sum(each.cpu_s + each.waited_s for each in family_of(pid)) for name, pid in roots.items()}


def _redis() -> dict[str, int]:
    from django.conf import settings

    with Redis.from_url(settings.REDIS) as client:
        stats = cast("dict[str, dict[str, int]]", client.info("commandstats"))
    return {name.removeprefix("cmdstat_"): counters["calls"] for name, counters in stats.items()}


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement's cost: calls, seconds in all, milliseconds of one in the mean and at most."""

    calls: int
    seconds: float
    mean_ms: float
    max_ms: float
    text: str


def slowest(fleet: Fleet, order: str = "total_exec_time", count: int = 8) -> list[Statement]:
    """Return the costliest statements: by "total_exec_time" or "max_exec_time"."""
    with superuser(fleet.place) as connection:
        rows: list[Any] = connection.execute(_SLOWEST.format(order), [count]).fetchall()
    return [Statement(row[0], row[1], row[2], row[3], " ".join(row[4].split())) for row in rows]


@dataclass(frozen=True, slots=True)
class Waits:
    """Waits of one priority's experiments in seconds: p50, p95 and worst of the first boot, once built, and of the whole."""

    priority: int
    experiments: int
    boot: tuple[float, ...]
    whole: tuple[float, ...]


def waits(fleet: Fleet, since: Marks) -> list[Waits]:
    """Return the waits of each priority, the highest first."""
    with superuser(fleet.place) as connection:
        rows: list[Any] = connection.execute(_WAITS.format(since.experiment, _SHARES)).fetchall()
    return [
        Waits(row[0], row[1], tuple(map(float, row[2:5])), tuple(float(x or 0) for x in row[5:8]))
        for row in rows
    ]


def takeovers(fleet: Fleet, tokens: Sequence[str]) -> list[float]:
    """Return the seconds for which the claims of workers that had died were held; tokens: of those claims."""
    with superuser(fleet.place) as connection:
        rows: list[Any] = connection.execute(_TAKEOVERS, [list(tokens)]).fetchall()
    return sorted(float(row[0]) for row in rows)


def busy_seconds(fleet: Fleet, since: Marks) -> float:
    """Return the seconds for which targets were held, by the diary; claims that are still held count until now."""
    with superuser(fleet.place) as connection:
        rows: list[Any] = connection.execute(_HELD, [since.entry]).fetchall()
    return float(rows[0][0] or 0)
