# SPDX-License-Identifier: GPL-2.0-or-later
"""Saved views: names for filtered lists of experiments."""

from __future__ import annotations

from typing import Any, cast

from django.db.models import Q, QuerySet
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from lab.models import SavedView, User
from lab.people.saved_views import LONGEST_QUERY, delete_view, edit_view, save_view
from web.api.auth import OwnThings, scopes_of
from web.api.fields import Body, Text, Truth, taken
from web.api.filters import Filters, TruthFilter
from web.api.resource import Resource


class SavedViewRow(serializers.Serializer[Any]):
    """A view; query as the address of the experiments' page takes it, such as `?state=running`."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    query = serializers.CharField()
    shared = serializers.BooleanField()
    owner = serializers.CharField(source="user.username")
    created_at = serializers.DateTimeField()


class WantedView(Body):
    """A view to be."""

    name = Text(min_length=1, max_length=100)
    query = Text(min_length=1, max_length=LONGEST_QUERY)
    shared = Truth(default=False)


class ViewFilters(Filters):
    """Shared ones, or one's own unshared."""

    shared = TruthFilter(field_name="shared")


class SavedViews(Resource):
    """One's own views, and those that others share."""

    permission_classes = (OwnThings,)
    queryset = SavedView.objects.all()
    rows = SavedViewRow
    filterset_class: Any = ViewFilters
    search_fields = ("name",)
    ordering_fields = ("id", "name")
    ordering = ("name", "pk")

    def get_queryset(self) -> QuerySet[Any]:
        """Those that who asks may see."""
        rows = super().get_queryset()
        if getattr(self, "swagger_fake_view", False):
            return rows
        return rows.filter(Q(shared=True) | Q(user=cast("User", self.request.user)))

    def word(self) -> str:
        """Return the name of one row."""
        return "saved view"

    @extend_schema(request=WantedView, responses={201: SavedViewRow})
    def create(self, request: Request) -> Response:
        """Keep a list's filters under a name of yours."""
        row = save_view(user=cast("User", request.user), **taken(WantedView, request))
        return Response(self.one(row.pk), status=201)

    @extend_schema(request=WantedView, responses=SavedViewRow)
    def partial_update(self, request: Request, id: int) -> Response:  # noqa: A002  the address says so
        """Change what is given of it; for its owner and operators."""
        given = taken(WantedView, request, partial=True)
        edit_view(view_id=id, by=cast("User", request.user), scopes=scopes_of(request), **given)
        return Response(self.one(id))

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, id: int) -> HttpResponse:  # noqa: A002
        """Remove it."""
        delete_view(view_id=id, by=cast("User", request.user), scopes=scopes_of(request))
        return HttpResponse(status=204)
