# SPDX-License-Identifier: GPL-2.0-or-later
"""The common part of all resources: strict lists in two queries, one row by its number, our problems."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from django.http import Http404, HttpRequest
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import conditional_page
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from lab.people.permissions import Action
from web.api.filters import Filters, Known, Ordering, Search, Where
from web.api.shapes import Names, Row, Shape, TableRow, read_rows


class View(GenericViewSet[Any]):
    """A viewset with our rules. needed: the permission that each action needs, "read" by default.

    also_answers: problem statuses of single actions, beside those of all actions.
    """

    needed: ClassVar[Mapping[str, Action]] = {}
    also_answers: ClassVar[Mapping[str, Sequence[int]]] = {}
    # drf-spectacular takes the type of an untyped path parameter from it.
    lookup_url_kwarg = "id"
    lookup_value_converter = "int"

    @classmethod
    def as_view(cls, *args: Any, **kwargs: Any) -> Any:
        """Return the view for Django; answers carry an ETag, and an unchanged answer is not sent again."""
        return csrf_exempt(conditional_page(super().as_view(*args, **kwargs)))

    def finalize_response(self, *args: Any, **kwargs: Any) -> Response:
        """Return the response, kept out of shared caches and revalidated each time, since it may depend on the user."""
        response: Response = super().finalize_response(*args, **kwargs)
        response.headers["Cache-Control"] = "private, no-cache"
        return response

    def options(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        """Return the allowed methods."""
        return Response(status=204, headers={"Allow": ", ".join(self.allowed_methods)})


class Resource(View):
    """Rows of one table: `rows` in lists, `whole` for one row (by default the same).

    filters: names of columns by which a list is filtered; a list with further filters names its `filterset_class`.
    """

    rows: ClassVar[type[TableRow]]
    whole: ClassVar[type[TableRow] | None] = None
    filters: ClassVar[Names] = ()
    filterset_class: Any = None
    filter_backends: Any = (Known, Where, Search, Ordering)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.filters:
            own = {"rows": cls.rows, "names": cls.filters}
            cls.filterset_class = type(f"{cls.__name__}Filters", (Filters,), own)

    def get_serializer_class(self) -> Shape:
        """Return the shape of the current action's answer."""
        return (self.whole or self.rows) if getattr(self, "action", "") == "retrieve" else self.rows

    def list(self, request: Request) -> Response:
        """A page of rows: first their numbers, then the columns of just these."""
        chosen = self.filter_queryset(self.get_queryset())
        keys = self.paginate_queryset(chosen.values_list("pk", flat=True))
        rows = read_rows(self.get_queryset(), self.rows, keys or [])
        return self.get_paginated_response(self.completed(rows))

    def retrieve(self, request: Request, id: int) -> Response:  # noqa: A002  the address says so
        """One row."""
        return Response(self.full_row(id))

    def full_row(self, key: int) -> Row:
        """One row in full. Raises Http404."""
        rows = read_rows(self.get_queryset().filter(pk=key), self.whole or self.rows)
        if not rows:
            raise Http404(f"there is no {self.word()} {key}")
        return self.completed_detail(self.completed(rows)[0])

    def word(self) -> str:
        """Return the name of one row."""
        return str(self.get_queryset().model._meta.verbose_name)

    def completed(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Return the rows with the values that are not columns."""
        return rows

    def completed_detail(self, row: Row) -> Row:
        """Return one row with the values that only its own address shows."""
        return row


class Plain(BaseContentNegotiation):
    """Negotiation for addresses with a single format: it is sent, whatever the client accepts."""

    def select_parser(self, request: HttpRequest, parsers: Any) -> Any:
        """The first."""
        return parsers[0] if parsers else None

    def select_renderer(self, request: HttpRequest, renderers: Any, format_suffix: str | None = None) -> Any:
        """The first."""
        return renderers[0], renderers[0].media_type
