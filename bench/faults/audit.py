# SPDX-License-Identifier: GPL-2.0-or-later
"""A diary that PostgreSQL itself keeps of a lab's rows: what was claimed, recorded, changed afterwards or deleted.

Triggers write it in the same transaction as the change, so it tells what really happened, whatever code did it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from django.db import connection

# Columns that say how a run or build came out; once it is over, none of them may change.
_RUN = ("outcome", "blame", "problem", "environment", "line", "extras", "counters", "findings", "attempt")
_BUILD = ("artifact_key", "release", "code_hash", "blame", "problem", "attempt")

_TABLE = """
CREATE SCHEMA IF NOT EXISTS diary;
CREATE TABLE IF NOT EXISTS diary.entry (
    id bigserial PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    kind text NOT NULL, row bigint NOT NULL, was text NOT NULL, became text NOT NULL,
    token text NOT NULL DEFAULT '', holder text NOT NULL DEFAULT '', attempt int NOT NULL DEFAULT 0,
    note text NOT NULL DEFAULT ''
);
"""

_CLAIMED = """
CREATE OR REPLACE FUNCTION diary.{kind}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        INSERT INTO diary.entry (kind, row, was, became) VALUES ('{kind}', OLD.id, OLD.state, 'deleted');
        RETURN OLD;
    END IF;
    IF OLD.state <> NEW.state OR OLD.token <> NEW.token THEN
        INSERT INTO diary.entry (kind, row, was, became, token, holder, attempt)
        VALUES ('{kind}', NEW.id, OLD.state, NEW.state,
                CASE WHEN NEW.token = '' THEN OLD.token ELSE NEW.token END,
                CASE WHEN NEW.claimed_by = '' THEN OLD.claimed_by ELSE NEW.claimed_by END, NEW.attempt);
    ELSIF OLD.state IN ({over}) AND ({changed}) THEN
        INSERT INTO diary.entry (kind, row, was, became, note)
        VALUES ('{kind}', NEW.id, OLD.state, NEW.state, 'rewritten');
    END IF;
    RETURN NEW;
END $$;
DROP TRIGGER IF EXISTS diary ON lab_{kind};
CREATE TRIGGER diary AFTER UPDATE OR DELETE ON lab_{kind} FOR EACH ROW EXECUTE FUNCTION diary.{kind}();
"""

_STATED = """
CREATE OR REPLACE FUNCTION diary.experiment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        INSERT INTO diary.entry (kind, row, was, became) VALUES ('experiment', OLD.id, OLD.state, 'deleted');
        RETURN OLD;
    END IF;
    IF OLD.state <> NEW.state THEN
        INSERT INTO diary.entry (kind, row, was, became) VALUES ('experiment', NEW.id, OLD.state, NEW.state);
    END IF;
    RETURN NEW;
END $$;
DROP TRIGGER IF EXISTS diary ON lab_experiment;
CREATE TRIGGER diary AFTER UPDATE OR DELETE ON lab_experiment FOR EACH ROW EXECUTE FUNCTION diary.experiment();
CREATE OR REPLACE FUNCTION diary.sample() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO diary.entry (kind, row, was, became, note)
    VALUES ('sample', OLD.run_id, OLD.value::text, TG_OP, OLD.metric);
    RETURN NULL;
END $$;
DROP TRIGGER IF EXISTS diary ON lab_sample;
CREATE TRIGGER diary AFTER UPDATE OR DELETE ON lab_sample FOR EACH ROW EXECUTE FUNCTION diary.sample();
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """One change. kind: run, build, experiment or sample (whose row is its run); holder and token: of the claim."""

    at: datetime
    kind: str
    row: int
    was: str
    became: str
    token: str
    holder: str
    attempt: int
    note: str


def keep_diary() -> None:
    """Have the database keep a diary from now on; one that it keeps already goes on."""
    with connection.cursor() as cursor:
        cursor.execute(_TABLE)
        cursor.execute(_claimed("run", _RUN, ("done", "failed", "cancelled")))
        cursor.execute(_claimed("build", _BUILD, ("built",)))
        cursor.execute(_STATED)


def _claimed(kind: str, columns: tuple[str, ...], over: tuple[str, ...]) -> str:
    changed = " OR ".join(f"OLD.{column} IS DISTINCT FROM NEW.{column}" for column in columns)
    return _CLAIMED.format(kind=kind, changed=changed, over=", ".join(f"'{state}'" for state in over))


def entries(kind: str = "", row: int = 0) -> Iterator[Entry]:
    """Return the diary's entries in order; on request only of one kind or row."""
    where = ""
    params: list[str | int] = []
    if kind:
        where, params = " WHERE kind = %s", [kind]
        if row:
            where, params = where + " AND row = %s", [*params, row]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT at, kind, row, was, became, token, holder, attempt, note FROM diary.entry"
            + where
            + " ORDER BY id",
            params,
        )
        for record in cursor.fetchall():
            yield Entry(*record)
