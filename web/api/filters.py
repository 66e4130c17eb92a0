# SPDX-License-Identifier: GPL-2.0-or-later
"""Query parameters of lists, all of them strict: an unknown or meaningless parameter is refused, not ignored."""

import re
from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from typing import Any, ClassVar

from django import forms
from django.db import models
from django.db.models import QuerySet
from django_filters import rest_framework as django_filters
from django_filters.fields import IsoDateTimeField
from drf_spectacular.utils import extend_schema_field
from rest_framework.filters import BaseFilterBackend, OrderingFilter, SearchFilter
from rest_framework.request import Request

from lab.validation_messages import nearest
from web.api.problems import Fault, ParameterRefused, Problem, Refusal
from web.api.shapes import TableRow

LONGEST = 200
# SQLite refuses conditions that are nested deeper than some hundreds.
MOST_WORDS = 12
MOST_ID = 2**63 - 1
_PLAIN_TEXT = r"^[^\u0000]*$"


class _IdField(forms.Field):
    def to_python(self, value: Any) -> int | None:
        if value in self.empty_values:
            return None
        if not re.fullmatch(r"[0-9]{1,19}", value) or int(value) > MOST_ID:
            raise forms.ValidationError(f'"{value[:40]}" is not a number from 0 to {MOST_ID}')
        return int(value)


@extend_schema_field({"type": "integer", "minimum": 0, "maximum": MOST_ID})
class IdFilter(django_filters.Filter):  # type: ignore[misc]  # the library has no types
    """A row's number, or another whole number."""

    field_class = _IdField


class _TruthField(forms.Field):
    def to_python(self, value: Any) -> bool | None:
        if value in self.empty_values:
            return None
        if value not in {"true", "false"}:
            raise forms.ValidationError(f'"{value[:40]}" is neither true nor false')
        return bool(value == "true")


@extend_schema_field({"type": "boolean"})
class TruthFilter(django_filters.Filter):  # type: ignore[misc]
    """true or false."""

    field_class = _TruthField


class _MomentField(IsoDateTimeField):  # type: ignore[misc]
    def to_python(self, value: Any) -> datetime | None:
        moment = super().to_python(value)
        try:
            return moment.astimezone(UTC) if moment else None
        except OverflowError:
            # Databases keep times in UTC, which has no year 0 and no year 10000.
            raise forms.ValidationError(f'"{value[:40]}" is not a date of UTC') from None


class MomentFilter(django_filters.IsoDateTimeFilter):  # type: ignore[misc]
    """A time as ISO 8601 writes it."""

    field_class = _MomentField


@extend_schema_field({"type": "string", "minLength": 1, "maxLength": LONGEST, "pattern": _PLAIN_TEXT})
class TextFilter(django_filters.CharFilter):  # type: ignore[misc]
    """A text that must be equal."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(max_length=LONGEST, strip=False, **arguments)


class WordFilter(django_filters.ChoiceFilter):  # type: ignore[misc]
    """One of a few words."""

    def __init__(self, words: Iterable[str], **arguments: Any) -> None:
        names = [str(word) for word in words]
        super().__init__(choices=[(name, name) for name in names], **arguments)
        extend_schema_field({"type": "string", "enum": names})(self)


# A client that asks for pages may ask so for a list that is always whole.
PAGING = ("page", "page_size")


def refuse_others(request: Request, known: Collection[str] = ()) -> None:
    """Raise ParameterRefused if the address has a parameter that is not known, naming the nearest."""
    for name in request.query_params:
        if name not in known:
            way_out = nearest(name[:40], sorted(known)) if known else "leave it out"
            raise ParameterRefused(name[:40], f"there is no such parameter; {way_out}")


class Known(BaseFilterBackend):
    """Refuses parameters that a list does not have, naming the nearest."""

    def filter_queryset(self, request: Request, queryset: QuerySet[Any], view: Any) -> QuerySet[Any]:
        """The same rows. Raises ParameterRefused."""
        known = {"page", "page_size", "after"}
        if getattr(view, "filterset_class", None):
            known |= set(view.filterset_class.base_filters)
        if getattr(view, "search_fields", None):
            known.add("search")
        if getattr(view, "ordering_fields", None):
            known.add("ordering")
        for name, value in request.query_params.items():
            if not value and name != "search":
                raise ParameterRefused(name[:40], "it is empty; leave it out")
        refuse_others(request, known)
        return queryset

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        """None of its own."""
        return []


class Search(SearchFilter):
    """`?search=`: rows in which each word is found in one of the fields."""

    def filter_queryset(self, request: Request, queryset: QuerySet[Any], view: Any) -> QuerySet[Any]:
        """Return the rows that match. Raises ParameterRefused."""
        search = request.query_params.get("search", "")
        if len(search) > LONGEST or "\0" in search:
            raise ParameterRefused("search", f"give at most {LONGEST} characters, and no NUL")
        if len(search.split()) > MOST_WORDS:
            raise ParameterRefused("search", f"give at most {MOST_WORDS} words", 422)
        return super().filter_queryset(request, queryset, view)

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        """Describe the parameter for the schema."""
        fields = getattr(view, "search_fields", ())
        if not fields:
            return []
        schema = {"type": "string", "maxLength": LONGEST, "pattern": _PLAIN_TEXT}
        description = f"Words that must all occur in {', '.join(name.replace('__', '.') for name in fields)}."
        return [
            {"name": "search", "in": "query", "required": False, "description": description, "schema": schema}
        ]


class Ordering(OrderingFilter):
    """`?ordering=`: fields to order by, each reversed by a minus before it; equal rows are ordered by number."""

    def get_ordering(self, request: Request, queryset: QuerySet[Any], view: Any) -> list[str]:
        """Return the fields to order by. Raises ParameterRefused."""
        ordering = request.query_params.get("ordering")
        default = list(getattr(view, "ordering", ("pk",)))
        if ordering is None:
            return default
        known = list(getattr(view, "ordering_fields", ()))
        names = ordering.split(",")
        for name in names:
            if name.removeprefix("-") not in known:
                raise ParameterRefused(
                    "ordering", f'"{name[:40]}" is not a field to order by; {nearest(name[:40], known)}'
                )
        if names[0] in ("id", "-id"):
            # The other fields have no influence, and the list continues beyond the counted rows by `after`.
            return names[:1]
        return [*names, "-pk" if names[0].startswith("-") else "pk"]

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        """Describe the parameter for the schema."""
        known = list(getattr(view, "ordering_fields", ()))
        if not known:
            return []
        words = "|".join(f"-?{name}" for name in known)
        schema = {"type": "string", "pattern": f"^(?:{words})(?:,(?:{words}))*$", "maxLength": 200}
        description = f"Any of {', '.join(known)}, separated by commas; a minus reverses the order."
        return [
            {
                "name": "ordering",
                "in": "query",
                "required": False,
                "description": description,
                "schema": schema,
            }
        ]


class Filters(django_filters.FilterSet):  # type: ignore[misc]
    """The filters of a list, whose errors name the parameter.

    names: all filters in their order; an undeclared one asks for equality with a column of `rows`, by its type.
    """

    rows: ClassVar[type[TableRow]]
    names: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def get_filters(cls) -> dict[str, Any]:
        """Return the declared filters and those of columns."""
        declared = super().get_filters()
        return {name: declared.get(name) or _column_filter(cls.rows, name) for name in cls.names}


def _column_filter(rows: type[TableRow], name: str) -> django_filters.Filter:
    path = rows.path(name)
    column, _ = rows.column(path)
    if isinstance(column, models.BooleanField):
        return TruthFilter(field_name=path)
    if isinstance(column, models.IntegerField | models.ForeignKey):
        return IdFilter(field_name=path)
    if column.choices:
        return WordFilter([value for value, _ in column.choices], field_name=path)
    return TextFilter(field_name=path)


class Where(django_filters.DjangoFilterBackend):  # type: ignore[misc]
    """django-filter, with errors in the form of our faults."""

    def filter_queryset(self, request: Request, queryset: QuerySet[Any], view: Any) -> QuerySet[Any]:
        """Rows that pass the view's filters. Raises Refusal."""
        chosen = self.get_filterset(request, queryset, view)
        if chosen is None:
            return queryset
        if not chosen.is_valid():
            faults = tuple(
                Fault(str(line), parameter=name) for name, lines in chosen.errors.items() for line in lines
            )
            raise Refusal(Problem(400, f"{faults[0].parameter}: {faults[0].detail}", "validation", faults))
        return chosen.qs  # type: ignore[no-any-return]
