# SPDX-License-Identifier: GPL-2.0-or-later
"""Upkeep that is due seldom: when each chore was last done is a row that all processes share.

Times are the database's. A time in the future, as after a clock was set back, is ignored.
"""

import json
from collections.abc import Mapping
from typing import Any

from django.db import connection
from django.db.models import Q

from lab.leases.prepared import after, run_prepared
from lab.models import Chore

# A chore that was begun this long ago may be begun by another worker: its own was probably killed.
GIVEN_UP_S = 3600.0
# Setting the database's clock back by less than this goes unnoticed.
_SET_BACK_S = 60.0


def _past(column: str, seconds: str) -> str:
    """Return the SQL for a time in a column that is not in the last `seconds` seconds."""
    return f"({column} IS NULL OR {column} <= statement_timestamp() - make_interval(secs => {seconds}) OR {column} > statement_timestamp() + interval '{_SET_BACK_S} s')"


# PostgreSQL takes a chore in one statement, which writes nothing where it is not due.
DONE = f"SELECT 1 FROM lab_chore WHERE name = %(chore)s AND NOT {_past('done_at', '%(every)s::float8')}"  # noqa: S608  our names
_BEGIN = f"""WITH taken AS (
  UPDATE lab_chore SET begun_at = statement_timestamp() WHERE name = %(name)s AND {_past("done_at", "%(every)s::float8")}
    AND {_past("begun_at", "least(%(every)s::float8, %(given_up)s::float8)")} RETURNING 1),
made AS (
  INSERT INTO lab_chore (name, begun_at, found) SELECT %(name)s, statement_timestamp(), '{{}}'
  WHERE NOT EXISTS (SELECT 1 FROM lab_chore WHERE name = %(name)s) ON CONFLICT (name) DO NOTHING RETURNING 1)
SELECT 1 FROM taken UNION ALL SELECT 1 FROM made"""  # noqa: S608  our names
_END = "UPDATE lab_chore SET begun_at = NULL, done_at = statement_timestamp(), found = %(found)s::jsonb WHERE name = %(name)s"


def is_done(name: str, within_s: float) -> bool:
    """Return whether a chore was done in the last within_s seconds; writes nothing."""
    if connection.vendor == "postgresql":
        return bool(run_prepared(DONE, {"chore": name, "every": within_s}))
    return Chore.objects.filter(~_not_within("done_at", within_s), name=name, done_at__isnull=False).exists()


def begin_chore(name: str, every_s: float) -> bool:
    """Take a chore that is due; False where it is not, or another worker does it."""
    if connection.vendor == "postgresql":
        return bool(run_prepared(_BEGIN, {"name": name, "every": every_s, "given_up": GIVEN_UP_S}))
    due = Q(done_at=None) | _not_within("done_at", every_s)
    free = Q(begun_at=None) | _not_within("begun_at", min(GIVEN_UP_S, every_s))
    if Chore.objects.filter(due, free, name=name).update(begun_at=after(0.0)) == 1:
        return True
    _, made = Chore.objects.get_or_create(name=name, defaults={"begun_at": after(0.0)})
    return made


def end_chore(name: str, findings: Mapping[str, Any]) -> None:
    """Mark a chore as done. findings: its results, as JSON."""
    if connection.vendor == "postgresql":
        run_prepared(_END, {"name": name, "found": json.dumps(dict(findings))})
        return
    Chore.objects.filter(name=name).update(begun_at=None, done_at=after(0.0), found=dict(findings))


def _not_within(column: str, seconds: float) -> Q:
    """Match rows whose time in the column is not in the last `seconds` seconds."""
    return Q(**{f"{column}__lte": after(-seconds)}) | Q(**{f"{column}__gt": after(_SET_BACK_S)})
