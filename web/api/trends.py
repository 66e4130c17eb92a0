# SPDX-License-Identifier: GPL-2.0-or-later
"""Trends: one metric over the measured revisions of a tree, and its steps."""

from typing import Any

from django.db.models import Q, QuerySet
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from lab.models import Target, Trend
from lab.trends.page import point_data, step_data, trend_page
from lab.trends.summary import trend_lines
from web.api.filters import Filters, Known, TextFilter, Where
from web.api.resource import Plain, View
from web.api.schema import Number
from web.api.shapes import Names, Row, TableRow, finite
from web.views.trend_data import as_csv


class TrendRow(TableRow):
    """The identity of a trend."""

    table = Trend
    columns: Names = (
        *("key", "url", "page", "tree", "branch", "workload", "preset", "params", "target"),
        *("clock", "config", "metric", "unit", "better", "margin", "primary"),
    )
    url = serializers.URLField()
    page = serializers.URLField()


class PointShape(serializers.Serializer[Any]):
    """One measured revision: the median of its boots, the lowest and the highest."""

    commit = serializers.CharField()
    position = serializers.IntegerField()
    subject = serializers.CharField(allow_blank=True)
    author = serializers.CharField(allow_blank=True)
    median = Number()
    low = Number()
    high = Number()
    boots = serializers.IntegerField()
    experiments = serializers.ListField(child=serializers.IntegerField())


class StepShape(serializers.Serializer[Any]):
    """A step between two points, of which `at` is the second. pending: not yet certain; why: the reason."""

    at = serializers.IntegerField()
    verdict = serializers.ChoiceField(("regression", "improvement"))
    pending = serializers.BooleanField()
    why = serializers.CharField(allow_blank=True)
    ratio = Number()
    low = Number()
    high = Number()
    p_value = Number()
    good = serializers.CharField()
    bad = serializers.CharField()
    suspects = serializers.ListField(child=serializers.CharField())
    unlisted = serializers.IntegerField()


class TrendShape(TrendRow):
    """A trend with its points, oldest first, and its steps.

    shared: number of first points that are of the default branch, before the trend's branch forked off.
    """

    columns: Names = (*TrendRow.columns, "points", "steps", "unplaced", "shared")
    shared = serializers.IntegerField()
    points = PointShape(many=True)
    steps = StepShape(many=True)


class TrendFilters(Filters):
    """Filters by the identity of a trend."""

    rows = TrendRow
    names = ("tree", "branch", "workload", "preset", "target", "clock", "metric", "primary")
    target = TextFilter(method="on_target")

    def on_target(self, queryset: QuerySet[Any], name: str, value: str) -> QuerySet[Any]:
        """Trends of a target, or of the group that it is in."""
        groups = Target.objects.filter(name=value).exclude(group="").values("group")
        return queryset.filter(Q(target=value) | Q(target__in=groups))


KEY = OpenApiParameter("key", {"type": "string", "pattern": "^[A-Za-z0-9_-]+$"}, OpenApiParameter.PATH)


class Trends(View):
    """Trends."""

    queryset = Trend.objects.all()
    filterset_class: Any = TrendFilters
    filter_backends = (Known, Where)
    lookup_url_kwarg = "key"
    lookup_value_converter = "slug"
    serializer_class = TrendRow

    def list(self, request: Request) -> Response:
        """A page of trends without their points, the most recently fed first."""
        queryset = self.filter_queryset(self.get_queryset()).order_by("-latest_case", "key")
        keys: Any = self.paginate_queryset(queryset.values_list("key", flat=True))
        return self.get_paginated_response([self._row(line) for line in trend_lines(keys)])

    @extend_schema(parameters=[KEY], responses=TrendShape)
    def retrieve(self, request: Request, key: str) -> Response:
        """One of them, with its points and steps."""
        page = trend_page(key)
        shown = self._row(page.line) | {"unplaced": page.unplaced, "shared": page.shared}
        shown["points"] = [point_data(point) for point in page.points]
        shown["steps"] = [step_data(step) for step in page.steps]
        return Response(finite(shown))

    @extend_schema(parameters=[KEY], responses={(200, "text/csv"): OpenApiTypes.STR})
    @action(detail=True, content_negotiation_class=Plain)
    def csv(self, request: Request, key: str) -> HttpResponse:
        """One revision a line, oldest first."""
        return as_csv(request._request, key)

    def _row(self, line: Any) -> Row:
        root = self.request.build_absolute_uri("/")
        row = {name: getattr(line, name) for name in TrendRow.columns if name not in {"url", "page"}}
        row["url"], row["page"] = f"{root}api/v1/trends/{line.key}/", f"{root}trends/{line.key}/"
        return finite(row)  # type: ignore[no-any-return]
