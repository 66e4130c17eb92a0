# SPDX-License-Identifier: GPL-2.0-or-later
"""Rows and dataclasses as JSON: serializers derived from tables and dataclasses, which read rows without model instances."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from math import isfinite
from types import UnionType
from typing import Any, ClassVar, Literal, get_args, get_origin, get_type_hints

from django.db import models
from django.db.models import QuerySet
from rest_framework import serializers

from lab.models import Standing, Target, Tree, User
from web.api.schema import Mapped, Number, Texts

Names = tuple[str, ...]
# Rows of these tables are shown by this column, all others by their number.
_NAMED_BY: Mapping[type[models.Model], str] = {
    User: "username",
    Tree: "name",
    Target: "name",
    Standing: "name",
}


class TableRow(serializers.Serializer[Any]):
    """A row of a table; fields that are not columns, or not shown by their column's type, are declared as usual.

    columns: all names in their order, declared ones included.
    paths: the column of each name that differs from it, such as `case__workload`.
    """

    table: ClassVar[type[models.Model]]
    columns: Names
    paths: ClassVar[Mapping[str, str]] = {}

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """Return the declared fields, and one by type for each other column."""
        declared = super().get_fields()
        return {name: declared.get(name) or self._field(name) for name in self.columns}

    @classmethod
    def path(cls, name: str) -> str:
        """Return the column of a name as queries write it; for a foreign key, the column by which its row is shown."""
        path = cls.paths.get(name, name)
        column, _ = cls.column(path)
        if not isinstance(column, models.ForeignKey) or path.endswith("_id"):
            return path
        named_by = _NAMED_BY.get(column.related_model)  # type: ignore[arg-type]
        return f"{path}__{named_by}" if named_by else f"{path}_id"

    @classmethod
    def column(cls, path: str) -> tuple["models.Field[Any, Any]", bool]:
        """Return the column at the end of a path, and whether it may be null on the way."""
        table: Any = cls.table
        nullable = False
        for part in path.split("__"):
            column: Any = table._meta.get_field(part)
            nullable = nullable or column.null
            table = column.related_model
        return column, nullable

    def _field(self, name: str) -> serializers.Field[Any, Any, Any, Any]:
        path = self.path(name)
        column, nullable = self.column(path)
        options: dict[str, Any] = {"allow_null": True} if nullable else {}
        if path != name:
            options["source"] = path.replace("__", ".")
        if isinstance(column, models.FloatField):
            return Number(**options)
        if isinstance(column, models.JSONField):
            return (Texts if column.default is list else Mapped)(**options)
        if isinstance(column, models.DateTimeField):
            return serializers.DateTimeField(**options)
        if isinstance(column, models.BooleanField):
            return serializers.BooleanField(**options)
        if isinstance(column, models.IntegerField | models.ForeignKey):
            return serializers.IntegerField(**options)
        if column.choices:
            return serializers.ChoiceField(column.choices, allow_blank=column.blank, **options)
        return serializers.CharField(allow_blank=column.blank, **options)


class DataShape(serializers.Serializer[Any]):
    """A dataclass as JSON has it. of: the dataclass; without: fields that are not shown.

    Declared fields replace those of the dataclass, or come last. Nested dataclasses are shown by the shape declared for them.
    """

    of: ClassVar[type[Any]]
    without: ClassVar[Names] = ()
    shapes: ClassVar[dict[type[Any], type["DataShape"]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        DataShape.shapes[cls.of] = cls

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """Return the declared fields, and one by type for each other field of the dataclass."""
        declared = super().get_fields()
        hints = get_type_hints(self.of)
        names = [field.name for field in dataclasses.fields(self.of) if field.name not in self.without]
        typed = {name: field_of(hints[name]) for name in names if name not in declared}
        return {name: (typed | declared)[name] for name in dict.fromkeys([*names, *declared])}


def field_of(hint: Any) -> serializers.Field[Any, Any, Any, Any]:
    """Return the field for values of a type. Raises TypeError for a type that no answer has."""
    inner = [part for part in get_args(hint) if part not in (type(None), Ellipsis)]
    if get_origin(hint) is UnionType and len(inner) == 1:
        field = field_of(inner[0])
        field.allow_null = True
        return field
    if get_origin(hint) is Literal:
        return serializers.ChoiceField(inner)
    if get_origin(hint) in (tuple, list):
        if inner[0] in DataShape.shapes:
            return DataShape.shapes[inner[0]](many=True)
        return serializers.ListField(child=field_of(inner[0]))
    if hint in DataShape.shapes:
        return DataShape.shapes[hint]()
    if hint not in _PLAIN:
        raise TypeError(f"no field for {hint}")
    return _PLAIN[hint]()


_PLAIN: Mapping[Any, type[serializers.Field[Any, Any, Any, Any]]] = {
    str: serializers.CharField,
    int: serializers.IntegerField,
    bool: serializers.BooleanField,
    float: serializers.FloatField,
    datetime: serializers.DateTimeField,
}


Row = dict[str, Any]
Shape = type[serializers.Serializer[Any]]


@lru_cache(maxsize=256)
def columns(shape: Shape) -> tuple[tuple[str, str, bool], ...]:
    """Return for each field with a column: its name, its column, and whether it may hold NaN or infinity."""
    names = []
    for name, field in shape().fields.items():
        source = str(field.source or name)
        if source != "*":
            # Neither database accepts NaN or infinity inside JSON, so only columns of floats may hold them.
            risky = isinstance(field, serializers.FloatField)
            names.append((name, source.replace(".", "__"), risky))
    return tuple(names)


def read_rows(queryset: QuerySet[Any], shape: Shape, keys: Sequence[Any] | None = None) -> list[Row]:
    """Return rows as JSON has them, in the order of `keys` (primary keys) where they are given."""
    fields = columns(shape)
    paths = [path for _, path, _ in fields]
    names = [name for name, _, _ in fields]
    risky = [name for name, _, is_risky in fields if is_risky]
    if keys is not None:
        queryset = queryset.filter(pk__in=keys).order_by()
        paths = [*paths, "pk"]
    records = queryset.values_list(*paths)
    if keys is None:
        rows = [dict(zip(names, values, strict=True)) for values in records]
    else:
        by_key = {values[-1]: dict(zip(names, values[:-1], strict=True)) for values in records}
        # A row may have been deleted between the two statements.
        rows = [by_key[key] for key in keys if key in by_key]
    return _made_finite(rows, risky)


def _made_finite(rows: list[Row], risky: Iterable[str]) -> list[Row]:
    for name in risky:
        for row in rows:
            row[name] = finite(row[name])
    return rows


def finite(value: Any) -> Any:
    """Return the value with null for numbers that JSON does not have."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return value
