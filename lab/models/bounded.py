# SPDX-License-Identifier: GPL-2.0-or-later
"""Counts and lists of values that cost the same however many rows there are."""

from functools import cached_property
from typing import Any

from django.core.paginator import Page, Paginator
from django.db import connection
from django.db.models import Model, QuerySet

# The API counts no rows beyond these; pages that people leaf through count AHEAD pages behind the one that is shown.
MOST_COUNTED, AHEAD = 10_000, 5


def bounded_count(rows: QuerySet[Any], most: int) -> int:
    """Count rows, at most one more than `most`; in their order, so that the first of a long list are enough."""
    return len(rows.values_list("pk", flat=True)[: most + 1])


class BoundedPaginator(Paginator):  # type: ignore[type-arg]  # it cannot be subscripted when it runs
    """Django's paginator over the first rows of a list."""

    most = MOST_COUNTED

    @cached_property
    def count(self) -> int:
        """Return the number of rows, at most MOST_COUNTED."""
        return min(self.most, self._counted)

    @property
    def more(self) -> bool:
        """Return whether there are rows that are not counted."""
        return self._counted > self.most

    @cached_property
    def _counted(self) -> int:
        rows = self.object_list
        return bounded_count(rows, self.most) if isinstance(rows, QuerySet) else len(rows)


def leaf(rows: QuerySet[Any], size: int, number: int | str | None) -> Page[Any]:
    """Return one page of a list, counted only AHEAD pages further; a number beyond the last page is the last."""
    paginator, text = BoundedPaginator(rows, size), str(number or "")
    wanted = int(text) if text.isdecimal() and len(text) < 9 else 1
    paginator.most = min(MOST_COUNTED, (max(1, wanted) + AHEAD) * size)
    return paginator.get_page(wanted)


def distinct_values(model: type[Model], column: str) -> list[Any]:
    """Return the values of an indexed column, in order, by one index look-up for each, which neither database does for DISTINCT."""
    table, name = connection.ops.quote_name(model._meta.db_table), connection.ops.quote_name(column)
    with connection.cursor() as cursor:
        cursor.execute(
            f"WITH RECURSIVE found AS (SELECT min({name}) AS value FROM {table} UNION ALL"  # noqa: S608  our names
            f" SELECT (SELECT min({name}) FROM {table} WHERE {name} > found.value) FROM found"
            " WHERE found.value IS NOT NULL) SELECT value FROM found WHERE value IS NOT NULL"
        )
        return [value for (value,) in cursor.fetchall()]
