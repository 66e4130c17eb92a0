# SPDX-License-Identifier: GPL-2.0-or-later
"""Variants, which are combinations of switches; the build of each, and its log."""

from typing import Any, ClassVar

from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request

from lab.errors import one_row
from lab.models import Build, Variant
from lab.models.states import BuildState
from lab.storage.files import KeptFile
from web.api.experiments import VariantBrief
from web.api.filters import Filters, IdFilter
from web.api.logs import log_from, told_as_log
from web.api.resource import Plain, Resource
from web.api.shapes import Names, Row, TableRow

BLAMED = ("submission", "kernel", "lab")


class BuildRow(TableRow):
    """A build. cached: the artifact store held it, nothing was compiled; corrupted: how often its artifact differed from the
    built one; expired_at: when it was removed.
    """

    table = Build
    columns: Names = (
        *("id", "state", "commit", "tree_id", "inputs", "artifact_key", "release", "code_hash", "cached"),
        *("cpu_seconds", "wall_seconds", "blame", "problem", "attempt", "steps_done", "steps_expected"),
        *("corrupted", "created_at", "started_at", "finished_at", "expired_at"),
    )
    blame = serializers.ChoiceField(BLAMED, allow_blank=True)
    steps_done = serializers.IntegerField(help_text="Objects that the running build has compiled.")
    steps_expected = serializers.IntegerField(
        help_text="Objects that it is expected to compile; 0 while unknown."
    )


@extend_schema_field({"type": "array", "items": {"type": "integer"}})
class Numbers(serializers.JSONField):
    """Numbers of rows."""


class BuildDetail(BuildRow):
    """A build with its request, and the variants that use it."""

    columns: Names = (*BuildRow.columns, "problem_detail", "request", "variants")
    variants = Numbers(source="*")


class BuildFilters(Filters):
    """Filters by state, commit, release and experiment."""

    rows = BuildRow
    names = ("state", "commit", "release", "experiment")
    experiment = IdFilter(method="of_experiment")

    def of_experiment(self, queryset: QuerySet[Any], name: str, value: int) -> QuerySet[Any]:
        """Return the builds that variants of an experiment use."""
        return queryset.filter(Exists(Variant.objects.filter(build=OuterRef("pk"), experiment_id=value)))


class Builds(Resource):
    """Builds."""

    queryset = Build.objects.all()
    rows, whole = BuildRow, BuildDetail
    filterset_class: Any = BuildFilters
    search_fields = ("release", "commit", "problem")
    ordering_fields = ("id", "state", "created_at", "finished_at", "cpu_seconds", "wall_seconds")
    ordering = ("-pk",)
    also_answers: ClassVar = {"log": (410,)}

    def completed_detail(self, row: Row) -> Row:
        """Add the variants."""
        used = Variant.objects.filter(build=row["id"]).order_by("pk")
        return row | {"variants": list(used.values_list("pk", flat=True))}

    @told_as_log
    @action(detail=True, content_negotiation_class=Plain, filter_backends=(), pagination_class=None)
    def log(self, request: Request, id: int) -> HttpResponse:  # noqa: A002  the address says so
        """Return the compiler's output from a byte on."""
        build = one_row(Build.objects.filter(pk=id).only("log", "state", "expired_at"), f"build {id}")
        is_over = build.state not in (BuildState.QUEUED, BuildState.BUILDING)
        return log_from(request, KeptFile(build.log, build.expired_at), over=is_over)


class VariantRow(VariantBrief):
    """A variant."""

    columns: Names = (*VariantBrief.columns, "experiment", "commit", "tree_id")


class VariantDetail(VariantRow):
    """A variant, with the details of why it is not built."""

    columns: Names = (*VariantRow.columns, "problem_detail")


class Variants(Resource):
    """Variants."""

    queryset = Variant.objects.all()
    rows, whole = VariantRow, VariantDetail
    filters = ("experiment", "build", "name", "role", "state", "commit")
    search_fields = ("name",)
    ordering_fields = ("id", "experiment", "position", "name", "state")
    ordering = ("-pk",)
