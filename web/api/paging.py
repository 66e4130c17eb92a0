# SPDX-License-Identifier: GPL-2.0-or-later
"""Pages of lists: `?page=` from 1 up to row 10,000, `?after=` a row's number beyond that, `?page_size=` up to 500."""

import re
from typing import Any

from rest_framework.pagination import PageNumberPagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import remove_query_param, replace_query_param

from lab.models.bounded import MOST_COUNTED, BoundedPaginator
from web.api.problems import ParameterRefused

_NUMBER = re.compile(r"0*([0-9]{1,18})")
_MOST_NUMBER = 10**9 - 1
_MOST_ID = 10**18 - 1


class _Counted(BoundedPaginator):
    most = MOST_COUNTED


class Pages(PageNumberPagination):
    """`{count, next, previous, results}`; a page after the last does not exist (404).

    The cost does not grow with the list: rows are counted up to MOST_COUNTED, and `count` is null if there are more. Pages end
    there too; in lists ordered by the rows' numbers, `next` then continues after the last number, to the end of the list.
    """

    page_size = 50
    max_page_size = 500
    page_size_query_param = "page_size"
    last_page_strings = ()
    django_paginator_class = _Counted
    # Django REST framework sets these when it has chosen a page.
    page: Any
    request: Any
    # For a page requested by `after`: the last number on it if more rows follow, else 0.
    _last: int | None = None

    def get_page_size(self, request: Request) -> int:
        """Return the requested size, within the limits. Raises ParameterRefused."""
        size = request.query_params.get("page_size")
        return self.page_size if size is None else _number(size, "page_size", self.max_page_size)

    def get_page_number(self, request: Request, paginator: Any) -> int:
        """Return the requested page, by default the first. Raises ParameterRefused."""
        page = request.query_params.get("page")
        number = 1 if page is None else _number(page, "page", _MOST_NUMBER)
        if number > max(1, MOST_COUNTED // paginator.per_page) and paginator.more:
            raise ParameterRefused(
                "page",
                f"pages end at row {MOST_COUNTED:,}: narrow the list, or follow `next` in the order of numbers (?after=)",
                422,
            )
        return number

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        """The rows of the page that is asked for. Raises ParameterRefused."""
        after = request.query_params.get("after")
        if after is None:
            return super().paginate_queryset(queryset, request, view) or []
        if "page" in request.query_params:
            raise ParameterRefused("after", "give a page or a number, not both", 422)
        if not _by_number(queryset):
            raise ParameterRefused(
                "after", "this list is not in the order of its rows' numbers: give a page", 422
            )
        self.request = request
        number, size = _number(after, "after", _MOST_ID), self.get_page_size(request)
        side = "pk__lt" if queryset.query.order_by[0].startswith("-") else "pk__gt"
        keys = list(queryset.filter(**{side: number})[: size + 1])
        self._last = keys[size - 1] if len(keys) > size else 0
        return keys[:size]

    def get_next_link(self) -> str | None:
        """Return the address of the next page; after the last counted page, that of the rows after its last number."""
        if self._last is not None:
            return self._behind(self._last) if self._last else None
        page = self.page
        if page.has_next() or not page.paginator.more:
            return super().get_next_link()
        if _by_number(page.paginator.object_list):
            return self._behind(list(page.object_list)[-1])
        return replace_query_param(self._here(), "page", page.number + 1)

    def get_previous_link(self) -> str | None:
        """Return the address of the previous page; none for a page requested by `after`."""
        return super().get_previous_link() if self._last is None else None

    def get_paginated_response(self, data: Any) -> Response:
        """Return a page with the number of all rows, null if they are not counted."""
        known = self._last is None and not self.page.paginator.more
        return Response(
            {
                "count": self.page.paginator.count if known else None,
                "next": self.get_next_link(),
                "previous": self.get_previous_link(),
                "results": data,
            }
        )

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return Django REST framework's schema, with a count that may be null."""
        page_schema: dict[str, Any] = super().get_paginated_response_schema(schema)
        page_schema["properties"]["count"] |= {
            "type": ["integer", "null"],
            "description": f"Null where there are more than {MOST_COUNTED:,}, and with ?after=.",
        }
        return page_schema

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        """Describe the parameters for the schema."""
        return [
            _parameter(
                "page", f"Page number, from 1; pages end at row {MOST_COUNTED:,}.", maximum=_MOST_NUMBER
            ),
            _parameter("page_size", "Rows on a page.", maximum=self.max_page_size, default=self.page_size),
            _parameter(
                "after",
                "Rows after this number, in lists that are ordered by number.",
                minimum=0,
                maximum=_MOST_ID,
            ),
        ]

    def _behind(self, number: int) -> str:
        return replace_query_param(remove_query_param(self._here(), "page"), "after", number)

    def _here(self) -> str:
        return str(self.request.build_absolute_uri())


def _by_number(rows: Any) -> bool:
    query = getattr(rows, "query", None)
    return query is not None and query.order_by in (("pk",), ("-pk",), ("id",), ("-id",))


def _number(text: str, name: str, most: int) -> int:
    match = _NUMBER.fullmatch(text)
    least = 0 if name == "after" else 1
    if not match or not least <= int(match[1]) <= most:
        raise ParameterRefused(name, f'"{text[:40]}" is not a number from {least} to {most}')
    return int(match[1])


def _parameter(name: str, description: str, **limits: int) -> dict[str, Any]:
    schema = {"type": "integer", "minimum": 1, **limits}
    return {"name": name, "in": "query", "required": False, "description": description, "schema": schema}
