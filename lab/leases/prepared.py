# SPDX-License-Identifier: GPL-2.0-or-later
"""The database's clock, and statements that it prepares once for each connection."""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import psycopg
from django.db import connection
from django.db.models.expressions import CombinedExpression
from django.db.models.functions import Now
from django.utils import timezone

_NAME = re.compile(r"%\((\w+)\)s")


def run_prepared(text: str, values: Mapping[str, Any]) -> list[Any]:
    """Run a statement with values written as %(name)s; return its rows. PostgreSQL only.

    Django counts, logs and translates the errors of such a statement as of any other.
    """
    numbered, names = _numbered(text)
    connection.ensure_connection()
    # Django's own cursors put the values into the text, so each statement is a different text.
    raw: Any = psycopg.RawCursor(connection.connection)
    cursor = connection.make_debug_cursor(raw) if connection.queries_logged else connection.make_cursor(raw)
    with cursor:
        cursor.execute(numbered, [values[name] for name in names])
        return cursor.fetchall() if cursor.description else []


@cache
def _numbered(text: str) -> tuple[str, tuple[str, ...]]:
    """Return a statement with PostgreSQL's own marks for its values, and the names of these."""
    names = tuple(dict.fromkeys(_NAME.findall(text)))
    return _NAME.sub(lambda match: f"${names.index(match[1]) + 1}", " ".join(text.split())), names


def after(seconds: float) -> datetime | CombinedExpression:
    """Return the moment `seconds` from now by the database's clock, to write or to compare with; SQLite is on this host."""
    if connection.vendor == "postgresql":
        return Now() + timedelta(seconds=seconds)
    return timezone.now() + timedelta(seconds=seconds)
