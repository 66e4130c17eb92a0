# SPDX-License-Identifier: GPL-2.0-or-later
"""Fetches: previews and submissions that a worker carries out, each person's own; and the limits of what people send."""

from collections.abc import Sequence
from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from lab.models import Fetch
from lab.operations.limit_table import Limit
from lab.submission.fetches.requests import cancel_fetch, look_at_fetch
from web.api.auth import SignedIn, caller, scopes_of
from web.api.filters import PAGING, refuse_others
from web.api.resource import Resource, View
from web.api.shapes import DataShape, Row
from web.api.submission import FetchDetail, FetchRow, fetch_line, fetch_shown
from web.limits import all_limits


class Fetches(Resource):
    """One's own previews and submissions that a worker carries out; operators may look at and cancel anybody's."""

    permission_classes: Any = (SignedIn,)
    queryset = Fetch.objects.all()
    rows, whole = FetchRow, FetchDetail
    filters = ("state", "kind")
    search_fields = ("progress",)
    ordering_fields = ("id", "created_at")
    ordering = ("-pk",)
    also_answers: ClassVar = {"cancel": (409,)}

    def get_queryset(self) -> QuerySet[Any]:
        """Return the user's own fetches."""
        rows = super().get_queryset()
        if getattr(self, "swagger_fake_view", False):
            return rows
        return rows.filter(user=caller(self.request))

    def completed(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Add addresses, and the number of earlier requests."""
        fetches = Fetch.objects.in_bulk([row["id"] for row in rows])
        return [fetch_line(fetches[row["id"]], self.request) for row in rows if row["id"] in fetches]

    def retrieve(self, request: Request, id: int) -> Response:  # noqa: A002  the address says so
        """One fetch: its result once its state is done, its problem once it is failed."""
        row = look_at_fetch(fetch_id=id, by=caller(request), scopes=scopes_of(request))
        return Response(fetch_shown(row, request))

    @extend_schema(request=None, responses=FetchDetail)
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, id: int) -> Response:  # noqa: A002
        """Cancel it while it is open; its worker stops within seconds."""
        row = cancel_fetch(fetch_id=id, by=caller(request), scopes=scopes_of(request))
        return Response(fetch_shown(row, request))


class LimitShape(DataShape):
    """One limit; value: a whole number of `unit`; group: a heading."""

    of = Limit
    without = ("source",)


class LimitsView(View):
    """The limits of what people send."""

    pagination_class = None
    filter_backends: Any = ()
    serializer_class = LimitShape

    @extend_schema(responses=LimitShape(many=True))
    def list(self, request: Request) -> Response:
        """All limits; a larger value is refused, with the name of the limit's subject."""
        refuse_others(request, PAGING)
        return Response(LimitShape(all_limits(), many=True).data)
