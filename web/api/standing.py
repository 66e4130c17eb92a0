# SPDX-License-Identifier: GPL-2.0-or-later
"""Standing experiments and the alerts they raise."""

from dataclasses import asdict
from typing import Any, ClassVar

from django.http import Http404, HttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from lab.experiments.shown_description import without_password
from lab.experiments.stored_spec import without_defaults
from lab.models import Alert, Standing
from lab.standing.alerts import see_alert
from lab.standing.changes import (
    LEAST_SECRET,
    LONGEST_SECRET,
    MOST_ADDRESSES,
    POLL_S,
    StandingFields,
    change_standing,
    make_standing,
    remove_standing,
    run_standing,
)
from lab.trends.repeatability import Repeat, Repeatability, repeatability, repeats
from web.api.auth import caller, scopes_of
from web.api.fields import Body, Text, Truth, Whole, taken
from web.api.filters import Filters, TruthFilter, refuse_others
from web.api.problems import within
from web.api.resource import Resource
from web.api.schema import Number
from web.api.shapes import DataShape, Names, Row, TableRow, finite, read_rows
from web.api.submission import DescriptionShape

NAME = OpenApiParameter("name", {"type": "string", "pattern": "^[A-Za-z0-9_-]+$"}, OpenApiParameter.PATH)


class StandingRow(TableRow):
    """A standing experiment. problem: why its last check queued nothing although there was something to measure."""

    table = Standing
    columns: Names = (
        *("name", "owner", "tree", "branch", "enabled", "quiet_from", "quiet_until", "poll_every_s"),
        *("backfill", "last_commit", "due", "polled_at", "problem", "created_at"),
    )


class StandingDetail(StandingRow):
    """A standing experiment with the description it submits."""

    columns: Names = (*StandingRow.columns, "spec")
    spec = serializers.DictField()


class MadeStanding(StandingDetail):
    """A standing experiment with the secret for a forge's pushes, returned only this once."""

    columns: Names = (*StandingDetail.columns, "secret")


class WantedStanding(Body):
    """The requested standing experiment. spec: a description without its base; the quiet hours are UTC, equal hours mean none."""

    name = Text(min_length=1, max_length=100)
    spec = DescriptionShape()
    branch = Text(max_length=200, default="")
    enabled = Truth(default=True)
    quiet_from = Whole(min_value=0, max_value=23, default=0)
    quiet_until = Whole(min_value=0, max_value=23, default=0)
    poll_every_s = Whole(min_value=POLL_S[0], max_value=POLL_S[-1], default=300)
    backfill = Truth(default=False)
    secret = Text(
        max_length=LONGEST_SECRET,
        default="",
        help_text=f"Empty to generate one, or {LEAST_SECRET} characters at least.",
    )
    mail_to = serializers.ListField(child=Text(max_length=254), max_length=MOST_ADDRESSES, default=list)


class Standings(Resource):
    """Standing experiments."""

    queryset = Standing.objects.all()
    rows, whole = StandingRow, StandingDetail
    filters = ("owner", "tree", "enabled")
    search_fields = ("name", "tree__name", "branch")
    ordering_fields = ("name", "created_at")
    ordering = ("name", "pk")
    lookup_url_kwarg = "name"
    lookup_value_converter = "slug"
    needed: ClassVar = dict.fromkeys(("create", "partial_update", "destroy", "run"), "submit")
    also_answers: ClassVar = {"run": (422,)}

    @extend_schema(parameters=[NAME], responses=StandingDetail)
    def retrieve(self, request: Request, name: str) -> Response:  # type: ignore[override]
        """One of them, with its description."""
        return Response(self.named(name))

    @extend_schema(request=WantedStanding, responses={201: MadeStanding})
    def create(self, request: Request) -> Response:
        """Save a description to be submitted for each new revision of a branch."""
        fields = StandingFields(**taken(WantedStanding, request))
        with within("/spec"):
            row = make_standing(by=caller(request), fields=fields, scopes=scopes_of(request))
        return Response({**self.named(row.name), "secret": row.secret}, status=201)

    @extend_schema(parameters=[NAME], request=WantedStanding, responses=StandingDetail)
    def partial_update(self, request: Request, name: str) -> Response:
        """Change the given fields; for its owner and operators."""
        user, scopes = caller(request), scopes_of(request)
        body = taken(WantedStanding, request, partial=True)
        with within("/spec"):
            changed = change_standing(name=name, by=user, changes=body, scopes=scopes)
        return Response(self.named(changed.name))

    @extend_schema(parameters=[NAME], responses={204: None})
    def destroy(self, request: Request, name: str) -> HttpResponse:
        """Remove it with its alerts; its experiments stay."""
        remove_standing(name=name, by=caller(request), scopes=scopes_of(request))
        return HttpResponse(status=204)

    @extend_schema(parameters=[NAME], request=None, responses=StandingDetail)
    @action(detail=True, methods=["post"])
    def run(self, request: Request, name: str) -> Response:
        """Check its branch next, and measure it even if it has not changed."""
        row = run_standing(name=name, by=caller(request), scopes=scopes_of(request))
        return Response(self.named(row.name))

    def named(self, name: str) -> Row:
        """One row in full. Raises Http404."""
        rows = self.get_queryset().filter(name=name)
        details = read_rows(rows, StandingRow)
        if not details:
            raise Http404(f'there is no standing experiment "{name[:100]}"')
        spec = without_password(without_defaults(rows.values_list("spec", flat=True)[0]))
        return {**details[0], "spec": finite(spec)}


class AlertRow(TableRow):
    """A step that appeared in a trend which a standing experiment feeds."""

    table = Alert
    columns: Names = (
        *("id", "standing", "experiment", "trend", "metric", "commit", "ratio", "worse", "text"),
        *("seen_by", "seen_at", "created_at"),
    )


class AlertFilters(Filters):
    """Filters by subject, and by whether somebody has seen the alert."""

    rows = AlertRow
    names = ("standing", "experiment", "trend", "worse", "unseen")
    unseen = TruthFilter(field_name="seen_at", lookup_expr="isnull")


class RepeatShape(DataShape):
    """An alert whose revision was measured again, the experiments that did, and whether they confirm it."""

    of = Repeat


class RepeatabilityShape(DataShape):
    """The repeatability of all alerts. share: confirmed / repeated, null while none was repeated."""

    of = Repeatability
    share = Number()
    repeats = RepeatShape(many=True)


class Alerts(Resource):
    """Alerts."""

    queryset = Alert.objects.all()
    rows = AlertRow
    filterset_class: Any = AlertFilters
    search_fields = ("text",)
    ordering_fields = ("id", "created_at")
    ordering = ("-pk",)
    needed: ClassVar = {"seen": "submit"}

    @extend_schema(responses=RepeatabilityShape, filters=False)
    @action(detail=False, methods=["get"], pagination_class=None)
    def repeatability(self, request: Request) -> Response:
        """The share of repeated alerts that a later experiment of the same revision confirmed."""
        refuse_others(request)
        counted = repeatability()
        return Response(
            asdict(counted) | {"share": counted.share, "repeats": [asdict(repeat) for repeat in repeats()]}
        )

    @extend_schema(request=None, responses=AlertRow)
    @action(detail=True, methods=["post"])
    def seen(self, request: Request, id: int) -> Response:  # noqa: A002  the address says so
        """Mark it as seen; the first person to do so stays recorded."""
        see_alert(alert_id=id, by=caller(request), scopes=scopes_of(request))
        return Response(self.full_row(id))
