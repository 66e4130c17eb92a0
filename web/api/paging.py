# SPDX-License-Identifier: GPL-2.0-or-later
"""Pages of lists: `?page=` from 1, `?page_size=` up to 500."""

from __future__ import annotations

import re
from typing import Any

from rest_framework.pagination import PageNumberPagination
from rest_framework.request import Request

from web.api.problems import ParameterRefused

_NUMBER = re.compile(r"0*([0-9]{1,9})")


class Pages(PageNumberPagination):
    """`{count, next, previous, results}`; a page after the last is not there (404)."""

    page_size = 50
    max_page_size = 500
    page_size_query_param = "page_size"
    last_page_strings = ()

    def get_page_size(self, request: Request) -> int:
        """As asked, within the limits. Raises ParameterRefused."""
        given = request.query_params.get("page_size")
        return self.page_size if given is None else _number(given, "page_size", self.max_page_size)

    def get_page_number(self, request: Request, paginator: Any) -> int:
        """As asked, the first where nothing is. Raises ParameterRefused."""
        given = request.query_params.get("page")
        return 1 if given is None else _number(given, "page", 10**9 - 1)

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        """As the schema tells it."""
        return [
            _told("page", "Which page, from 1.", maximum=10**9 - 1),
            _told("page_size", "Rows on a page.", maximum=self.max_page_size, default=self.page_size),
        ]


def _number(given: str, name: str, most: int) -> int:
    match = _NUMBER.fullmatch(given)
    if not match or not 1 <= int(match[1]) <= most:
        raise ParameterRefused(name, f'"{given[:40]}" is not a number from 1 to {most}')
    return int(match[1])


def _told(name: str, description: str, **limits: int) -> dict[str, Any]:
    schema = {"type": "integer", "minimum": 1, **limits}
    return {"name": name, "in": "query", "required": False, "description": description, "schema": schema}
