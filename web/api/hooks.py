# SPDX-License-Identifier: GPL-2.0-or-later
"""Hooks and the deliveries to them: each user's own, and all for operators."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from lab.hooks.changes import (
    LONGEST_URL,
    HookFields,
    change_hook,
    deliver_again,
    make_hook,
    own_hook,
    remove_hook,
    try_hook,
)
from lab.hooks.events import EVENTS
from lab.models import Delivery, Hook
from lab.people.permissions import may
from web.api.auth import Allowed, OwnThings, caller, scopes_of
from web.api.fields import Body, Text, Truth, Word, taken
from web.api.filters import Known
from web.api.resource import Resource
from web.api.shapes import Names, Row, TableRow, read_rows


class HookRow(TableRow):
    """A hook; its secret is returned when it is made or replaced, never again. tree: null for all."""

    table = Hook
    columns: Names = ("id", "name", "kind", "url", "tree", "events", "enabled", "owner", "created_at")


class MadeHook(HookRow):
    """A hook with its secret, which signs its deliveries or is the token of its forge."""

    columns: Names = (*HookRow.columns, "secret")


class ChangedHook(HookRow):
    """A changed hook. secret: the new one, null if the old one is kept."""

    columns: Names = MadeHook.columns
    secret = serializers.CharField(allow_null=True)


class WantedHook(Body):
    """The requested hook. secret: generated if it is left out for a webhook; tree: null or left out for all trees."""

    name = Text(min_length=1, max_length=100)
    url = Text(min_length=1, max_length=LONGEST_URL)
    kind = Word(Hook.Kind.choices, default=Hook.Kind.WEBHOOK)
    events = serializers.ListField(child=Word(EVENTS), min_length=1, max_length=20, default=list(EVENTS))
    secret = Text(max_length=500, default="")
    tree = Text(max_length=100, allow_null=True, default=None)
    enabled = Truth(default=True)


class DeliveryRow(TableRow):
    """One event for one hook. answer: the beginning of the receiver's answer, or why there was none."""

    table = Delivery
    columns: Names = (
        *("id", "hook", "event", "subject", "state", "attempts", "next_at", "status", "answer"),
        *("created_at", "delivered_at"),
    )
    hook = serializers.IntegerField(source="hook_id")


class Hooks(Resource):
    """Hooks."""

    permission_classes = (OwnThings, Allowed)
    queryset = Hook.objects.all()
    rows = HookRow
    filters = ("kind", "tree", "enabled")
    search_fields = ("name", "url")
    ordering_fields = ("id", "name")
    ordering = ("name", "pk")
    needed: ClassVar = dict.fromkeys(("create", "partial_update", "destroy", "attempt"), "submit")
    also_answers: ClassVar = {"attempt": (422,)}

    def get_queryset(self) -> QuerySet[Any]:
        """Return the rows that the user may see."""
        return _visible(self, super().get_queryset(), "owner")

    @extend_schema(request=WantedHook, responses={201: MadeHook})
    def create(self, request: Request) -> Response:
        """Make a hook."""
        body = taken(WantedHook, request)
        fields = HookFields(**body | {"tree": body["tree"] or ""})
        row = make_hook(by=caller(request), fields=fields, scopes=scopes_of(request))
        return Response({**self.full_row(row.pk), "secret": row.secret}, status=201)

    @extend_schema(request=WantedHook, responses=ChangedHook)
    def partial_update(self, request: Request, id: int) -> Response:  # noqa: A002  the address says so
        """Change the given fields; with another kind or host a webhook gets a new secret, and the others need one."""
        user, scopes = caller(request), scopes_of(request)
        body = taken(WantedHook, request, partial=True)
        if "tree" in body:
            body["tree"] = body["tree"] or ""
        before = own_hook(hook_id=id, by=user, scopes=scopes).secret
        secret = change_hook(hook_id=id, by=user, changes=body, scopes=scopes).secret
        return Response({**self.full_row(id), "secret": None if secret == before else secret})

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, id: int) -> HttpResponse:  # noqa: A002
        """Remove it with its deliveries."""
        remove_hook(hook_id=id, by=caller(request), scopes=scopes_of(request))
        return HttpResponse(status=204)

    @extend_schema(operation_id="hooks_deliveries", responses=DeliveryRow(many=True))
    @action(detail=True, filter_backends=(Known,), filterset_class=None, search_fields=(), ordering_fields=())
    def deliveries(self, request: Request, id: int) -> Response:  # noqa: A002
        """A page of its past and pending deliveries, the newest first."""
        self.full_row(id)
        rows = Delivery.objects.filter(hook=id).order_by("-pk")
        keys: Any = self.paginate_queryset(self.filter_queryset(rows.values_list("pk", flat=True)))
        return self.get_paginated_response(read_rows(Delivery.objects.all(), DeliveryRow, keys))

    @extend_schema(request=None, responses={201: DeliveryRow})
    @action(detail=True, methods=["post"], url_path="try")
    def attempt(self, request: Request, id: int) -> Response:  # noqa: A002
        """Queue a delivery to see whether it arrives."""
        row = try_hook(hook_id=id, by=caller(request), scopes=scopes_of(request))
        return Response(_delivery(row), status=201)


class DeliveryDetail(DeliveryRow):
    """A delivery with its payload."""

    columns: Names = (*DeliveryRow.columns, "payload")


class Deliveries(Resource):
    """Deliveries."""

    permission_classes = (OwnThings, Allowed)
    queryset = Delivery.objects.filter(user=None)
    rows, whole = DeliveryRow, DeliveryDetail
    filters = ("hook", "event", "subject", "state")
    ordering_fields = ("id", "state", "next_at")
    ordering = ("-pk",)
    needed: ClassVar = {"again": "submit"}

    def get_queryset(self) -> QuerySet[Any]:
        """Return the deliveries of hooks that the user may see."""
        return _visible(self, super().get_queryset(), "hook__owner")

    @extend_schema(request=None, responses=DeliveryRow)
    @action(detail=True, methods=["post"])
    def again(self, request: Request, id: int) -> Response:  # noqa: A002
        """Send it once more."""
        row = deliver_again(delivery_id=id, by=caller(request), scopes=scopes_of(request))
        return Response(_delivery(row))


def _visible(view: Resource, rows: QuerySet[Any], owner: str) -> QuerySet[Any]:
    if getattr(view, "swagger_fake_view", False):
        return rows
    user = caller(view.request)
    return rows if may(user, "operate", scopes=scopes_of(view.request)) else rows.filter(**{owner: user})


def _delivery(row: Delivery) -> Row:
    return read_rows(Delivery.objects.filter(pk=row.pk), DeliveryRow)[0]
