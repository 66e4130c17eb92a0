# SPDX-License-Identifier: GPL-2.0-or-later
"""Copies of the experiments of a lab, made by PostgreSQL itself: later days, later revisions, other levels.

A copy has every row of its template, its numbers all multiplied by one factor: comparisons, points of trends and samples agree
as they do in the template. Rows are inserted without the checks of foreign keys, whose targets are copied too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from django.db import connection, models

from lab.models import (
    BasePoint,
    Build,
    Case,
    Comparison,
    Effect,
    Experiment,
    Profile,
    Run,
    Sample,
    Switch,
    Variant,
)

# Above what they refer to.
PLANNED = (Experiment, Switch, Case, Build, Variant, Run)
MEASURED = (Sample, Profile, Comparison, Effect, BasePoint)
# Revisions between a template and its next copy: those on which templates of one trend stand.
REVISIONS_EACH = 2

_LEVEL = "(1 + 0.002 * (hashint4(%(copy)s) %% 5) + CASE WHEN %(copy)s >= %(step)s THEN 0.04 ELSE 0 END)"
_LATER = "left({0}, 8) || lpad(to_hex(('x' || right({0}, 8))::bit(32)::int + %(revisions)s), 32, '0')"
_SHIFTED = "{0} + make_interval(secs => %(shift)s)"
_RENAMED = "{0} || '/%(copy)s'"
_ANEW = "encode(sha256(({0} || '/%(copy)s')::bytea), 'hex')"
_SCALED = "{0} * %(level)s"
# How columns of a copy differ from its template's; keys to other copied rows are moved along by themselves.
_CHANGED: Mapping[type[models.Model], Mapping[str, str]] = {
    Experiment: {
        "digest": _ANEW,
        "base_commit": _LATER,
        "base_tree_id": _ANEW,
        **dict.fromkeys(("created_at", "started_at", "finished_at"), _SHIFTED),
    },
    Build: {
        "inputs": _RENAMED,
        "artifact_key": _ANEW,
        "tree_id": _ANEW,
        "commit": _LATER,
        **dict.fromkeys(("created_at", "started_at", "finished_at"), _SHIFTED),
    },
    Variant: {"commit": _LATER},
    Run: dict.fromkeys(("created_at", "started_at", "finished_at"), _SHIFTED),
    Sample: {"value": _SCALED},
    Profile: {"perf_data_sha256": _ANEW},
    Comparison: {"base_median": _SCALED, "median": _SCALED, "created_at": _SHIFTED},
    BasePoint: {
        "commit": _LATER,
        "boots": "(SELECT jsonb_agg(one::float8 * %(level)s) FROM jsonb_array_elements_text({0}) AS one)",
    },
}


@dataclass(frozen=True, slots=True)
class Copying:
    """The templates: their greatest number in each table; how far apart copies are; the copy from which on all is slower."""

    greatest: Mapping[type[models.Model], int]
    apart_s: float
    step_at: int

    def copy(self, number: int, tables: tuple[type[models.Model], ...]) -> None:
        """Insert copy `number`, from 1, into these tables."""
        values = {
            "copy": str(number),
            "step": str(self.step_at),
            "revisions": str(REVISIONS_EACH * number),
            "shift": str(self.apart_s * number),
        }
        values["level"] = _LEVEL % values
        with connection.cursor() as cursor:
            for model in tables:
                cursor.execute(self._statement(model, number, values))

    def _statement(self, model: type[models.Model], number: int, values: Mapping[str, str]) -> str:
        columns = [field.column for field in model._meta.concrete_fields]
        chosen = [self._value(model, field, number) % values for field in model._meta.concrete_fields]
        table = model._meta.db_table
        listed = ", ".join(f'"{column}"' for column in columns)
        return (
            f"INSERT INTO {table} ({listed}) SELECT {', '.join(chosen)} FROM {table}"
            f" WHERE id <= {self.greatest[model]} ORDER BY id"
        )

    def _value(self, model: type[models.Model], field: models.Field[object, object], number: int) -> str:
        column = f'"{field.column}"'
        of = model if field.primary_key else field.related_model
        if of in self.greatest:
            return f"{column} + {number * self.greatest[of]}"  # type: ignore[index]
        return _CHANGED.get(model, {}).get(field.name, "{0}").format(column)


def templates(apart_s: float, step_at: int) -> Copying:
    """Take all experiments that there are for templates."""
    greatest: dict[type[models.Model], int] = {}
    for model in (*PLANNED, *MEASURED):
        last = model._default_manager.aggregate(last=models.Max("pk"))["last"]
        greatest[model] = last or 0
    return Copying(greatest, apart_s, step_at)


@contextmanager
def unchecked() -> Iterator[None]:
    """Insert without checks of foreign keys, then number new rows behind those that are there."""
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        cursor.execute("SET synchronous_commit = off")
        yield
        cursor.execute("SET session_replication_role = DEFAULT")
        for model in (*PLANNED, *MEASURED):
            table = model._meta.db_table
            cursor.execute(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), max(id)) FROM {table}")
