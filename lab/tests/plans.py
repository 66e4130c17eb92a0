# SPDX-License-Identifier: GPL-2.0-or-later
"""Tell what PostgreSQL reads for a page: every SELECT that it sends, explained while it is sent."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.db import connection

_PREFIX = "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) "


@dataclass(frozen=True, slots=True)
class Scan:
    """One scan of a table. rows: those that it looked at, whether they fitted or not."""

    table: str
    kind: str
    rows: int


@dataclass(frozen=True, slots=True)
class Statement:
    """One SELECT: its text, its scans, and the pages of 8 KiB that it touched."""

    sql: str
    scans: tuple[Scan, ...]
    pages: int

    @property
    def rows(self) -> int:
        """Return the rows that all its scans looked at."""
        return sum(scan.rows for scan in self.scans)


@dataclass(slots=True)
class Explained:
    """The statements of a block. sent: their number, those that are no SELECT included."""

    statements: list[Statement] = field(default_factory=list)
    sent: int = 0

    @property
    def rows(self) -> int:
        """Return the rows that all statements looked at."""
        return sum(statement.rows for statement in self.statements)

    @property
    def pages(self) -> int:
        """Return the pages of 8 KiB that all statements touched."""
        return sum(statement.pages for statement in self.statements)


@contextmanager
def explained() -> Iterator[Explained]:
    """Explain each SELECT of the block by running it once more, just before it is sent."""
    explanation = Explained()
    asking = False

    def explain(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal asking
        if not asking:
            explanation.sent += 1
            if sql.lstrip("( ").upper().startswith(("SELECT", "WITH")) and " FOR UPDATE" not in sql:
                asking = True
                try:
                    explanation.statements.append(_explain(sql, params))
                finally:
                    asking = False
        return execute(sql, params, many, context)

    with connection.execute_wrapper(explain):
        yield explanation


def _explain(sql: str, params: Sequence[Any] | None) -> Statement:
    with connection.cursor() as cursor:
        cursor.execute(_PREFIX + sql, params)
        (output,) = cursor.fetchone()
    plan = (json.loads(output) if isinstance(output, str) else output)[0]["Plan"]
    pages = int(plan.get("Shared Hit Blocks", 0)) + int(plan.get("Shared Read Blocks", 0))
    return Statement(sql, tuple(_scans(plan)), pages)


def _scans(plan: dict[str, Any]) -> Iterator[Scan]:
    if "Relation Name" in plan:
        each = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)
        each += plan.get("Rows Removed by Index Recheck", 0)
        yield Scan(plan["Relation Name"], plan["Node Type"], round(each * plan["Actual Loops"]))
    for part in plan.get("Plans", ()):
        yield from _scans(part)


def table_sizes() -> dict[str, int]:
    """Return how many rows PostgreSQL takes each table to have; it has to be analysed before."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname, greatest(reltuples, 0)::bigint FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace"
            " WHERE relkind = 'r' AND nspname = 'public'"
        )
        return dict(cursor.fetchall())
