# SPDX-License-Identifier: GPL-2.0-or-later
"""Standing experiments and the alerts they raise."""

from dataclasses import asdict
from typing import Any, ClassVar, cast

from django.http import Http404, HttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from lab.experiments.shown_description import without_password
from lab.experiments.stored_spec import without_defaults
from lab.models import Alert, Standing, User
from lab.standing.alerts import see_alert
from lab.standing.changes import (
    LEAST_SECRET,
    LONGEST_SECRET,
    MOST_ADDRESSES,
    POLL_S,
    StandingFields,
    change_standing,
    make_standing,
    own_standing,
    remove_standing,
    run_standing,
)
from lab.trends.repeatability import repeatability, repeats
from web.api.auth import scopes_of
from web.api.fields import Body, Text, Truth, Whole, taken
from web.api.filters import Filters, IdFilter, TextFilter, TruthFilter
from web.api.problems import within
from web.api.resource import Resource
from web.api.rows import Row, finite, read_rows
from web.api.schema import Number
from web.api.submission import DescriptionShape

NAME = OpenApiParameter("name", {"type": "string", "pattern": "^[A-Za-z0-9_-]+$"}, OpenApiParameter.PATH)
FIELDS = (
    "name",
    "branch",
    "enabled",
    "quiet_from",
    "quiet_until",
    "poll_every_s",
    "backfill",
    "mail_to",
)


class StandingRow(serializers.Serializer[Any]):
    """A standing experiment. problem: why its last look queued nothing although there was something."""

    name = serializers.CharField()
    owner = serializers.CharField(source="owner.username", allow_null=True)
    tree = serializers.CharField(source="tree.name")
    branch = serializers.CharField(allow_blank=True)
    enabled = serializers.BooleanField()
    quiet_from = serializers.IntegerField()
    quiet_until = serializers.IntegerField()
    poll_every_s = serializers.IntegerField()
    backfill = serializers.BooleanField()
    last_commit = serializers.CharField(allow_blank=True)
    due = serializers.BooleanField()
    polled_at = serializers.DateTimeField(allow_null=True)
    problem = serializers.CharField(allow_blank=True)
    created_at = serializers.DateTimeField()


class StandingDetail(StandingRow):
    """A standing experiment with the description it submits."""

    spec = serializers.DictField()


class MadeStanding(StandingDetail):
    """A standing experiment with what a forge signs its pushes with; told this once."""

    secret = serializers.CharField()


class WantedStanding(Body):
    """A standing experiment to be. spec: a description, its base left out; the hours are UTC, equal ones mean none."""

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


class StandingFilters(Filters):
    """By owner, tree and whether it looks."""

    owner = TextFilter(field_name="owner__username")
    tree = TextFilter(field_name="tree__name")
    enabled = TruthFilter(field_name="enabled")


class Standings(Resource):
    """Standing experiments."""

    queryset = Standing.objects.all()
    rows, whole = StandingRow, StandingDetail
    filterset_class: Any = StandingFilters
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
            row = make_standing(by=cast("User", request.user), fields=fields, scopes=scopes_of(request))
        return Response({**self.named(row.name), "secret": row.secret}, status=201)

    @extend_schema(parameters=[NAME], request=WantedStanding, responses=StandingDetail)
    def partial_update(self, request: Request, name: str) -> Response:
        """Change what is given of it; for its owner and operators."""
        user, scopes = cast("User", request.user), scopes_of(request)
        given = taken(WantedStanding, request, partial=True)
        row = own_standing(name=name, by=user, scopes=scopes)
        now = {field: getattr(row, field) for field in FIELDS} | {"spec": without_defaults(row.spec)}
        with within("/spec"):
            changed = change_standing(name=name, by=user, fields=StandingFields(**now | given), scopes=scopes)
        return Response(self.named(changed.name))

    @extend_schema(parameters=[NAME], responses={204: None})
    def destroy(self, request: Request, name: str) -> HttpResponse:
        """Remove it with its alerts; its experiments stay."""
        remove_standing(name=name, by=cast("User", request.user), scopes=scopes_of(request))
        return HttpResponse(status=204)

    @extend_schema(parameters=[NAME], request=None, responses=StandingDetail)
    @action(detail=True, methods=["post"])
    def run(self, request: Request, name: str) -> Response:
        """Have its branch looked at now, and measured even where it has not moved."""
        row = run_standing(name=name, by=cast("User", request.user), scopes=scopes_of(request))
        return Response(self.named(row.name))

    def named(self, name: str) -> Row:
        """One row in full. Raises Http404."""
        rows = self.get_queryset().filter(name=name)
        found = read_rows(rows, StandingRow)
        if not found:
            raise Http404(f'there is no standing experiment "{name[:100]}"')
        spec = without_password(without_defaults(rows.values_list("spec", flat=True)[0]))
        return {**found[0], "spec": finite(spec)}


class AlertRow(serializers.Serializer[Any]):
    """A step that appeared in a trend which a standing experiment feeds."""

    id = serializers.IntegerField()
    standing = serializers.CharField(source="standing.name")
    experiment = serializers.IntegerField(source="experiment_id", allow_null=True)
    trend = serializers.CharField()
    metric = serializers.CharField()
    commit = serializers.CharField()
    ratio = Number()
    worse = serializers.BooleanField()
    text = serializers.CharField()
    seen_by = serializers.CharField(source="seen_by.username", allow_null=True)
    seen_at = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()


class AlertFilters(Filters):
    """By what it is about, and whether somebody has seen it."""

    standing = TextFilter(field_name="standing__name")
    experiment = IdFilter(field_name="experiment_id")
    trend = TextFilter(field_name="trend")
    worse = TruthFilter(field_name="worse")
    unseen = TruthFilter(field_name="seen_at", lookup_expr="isnull")


class RepeatShape(serializers.Serializer[Any]):
    """An alert whose revision was measured again, by which experiments, and whether these confirm it."""

    alert = serializers.IntegerField()
    experiments = serializers.ListField(child=serializers.IntegerField())
    confirmed = serializers.BooleanField()


class RepeatabilityShape(serializers.Serializer[Any]):
    """The repeatability of all alerts. share: confirmed / repeated, null while none was repeated."""

    alerts = serializers.IntegerField()
    repeated = serializers.IntegerField()
    confirmed = serializers.IntegerField()
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
        counted = repeatability()
        return Response(
            asdict(counted) | {"share": counted.share, "repeats": [asdict(one) for one in repeats()]}
        )

    @extend_schema(request=None, responses=AlertRow)
    @action(detail=True, methods=["post"])
    def seen(self, request: Request, id: int) -> Response:  # noqa: A002  the address says so
        """Note that somebody has seen it; the first one stays."""
        see_alert(alert_id=id, by=cast("User", request.user), scopes=scopes_of(request))
        return Response(self.full_row(id))
