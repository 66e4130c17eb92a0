# SPDX-License-Identifier: GPL-2.0-or-later
"""Rows straight from the tables to JSON: a serializer says which columns, and no model instance is made.

The same serializers describe the schema. Fields whose source is "*" are filled in by the caller.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import isfinite
from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers

Row = dict[str, Any]
Shape = type[serializers.Serializer[Any]]


@lru_cache(maxsize=256)
def columns(shape: Shape) -> tuple[tuple[str, str, bool], ...]:
    """Of each field with a column: its name, its column, whether a number that is none may hide in it."""
    found = []
    for name, field in shape().fields.items():
        source = str(field.source or name)
        if source != "*":
            # Neither database takes such a number inside JSON.
            risky = isinstance(field, serializers.FloatField)
            found.append((name, source.replace(".", "__"), risky))
    return tuple(found)


def read_rows(queryset: QuerySet[Any], shape: Shape, keys: Sequence[Any] | None = None) -> list[Row]:
    """Return rows as JSON has them, in the order of `keys` (primary keys) where they are given."""
    told = columns(shape)
    paths = [path for _, path, _ in told]
    names = [name for name, _, _ in told]
    risky = [name for name, _, is_risky in told if is_risky]
    if keys is not None:
        queryset = queryset.filter(pk__in=keys).order_by()
        paths = [*paths, "pk"]
    found = queryset.values_list(*paths)
    if keys is None:
        rows = [dict(zip(names, values, strict=True)) for values in found]
    else:
        by_key = {values[-1]: dict(zip(names, values[:-1], strict=True)) for values in found}
        # A row may have gone between the two questions.
        rows = [by_key[key] for key in keys if key in by_key]
    return _made_finite(rows, risky)


def _made_finite(rows: list[Row], risky: Iterable[str]) -> list[Row]:
    for name in risky:
        for row in rows:
            row[name] = finite(row[name])
    return rows


def finite(value: Any) -> Any:
    """The value without numbers that JSON does not have; they become null."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return value
