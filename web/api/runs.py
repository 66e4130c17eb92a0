# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs: boots, how they ended, and what they said on their consoles."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from django.http import HttpResponse
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request

from lab.errors import one_row
from lab.models import Run
from lab.models.states import Outcome, RunState
from lab.storage.files import KeptFile
from web.api.builds import BLAMED
from web.api.filters import Filters, WordFilter
from web.api.logs import log_from, told_as_log
from web.api.resource import Plain, Resource
from web.api.schema import Listed
from web.api.shapes import Names, TableRow


class RunRow(TableRow):
    """A boot. target: where it boots or booted, null until its target is chosen. invalid: why its numbers do not
    count although it finished; expired_at: when its files were removed.
    """

    table = Run
    paths: ClassVar = {
        "variant_name": "variant__name",
        "workload": "case__workload",
        "preset": "case__preset",
        "build": "variant__build",
    }
    columns: Names = (
        *("id", "experiment", "variant", "variant_name", "case", "workload", "preset", "target", "block"),
        *("retake", "position", "purpose", "state", "outcome", "blame", "problem", "invalid", "attempt"),
        *("created_at", "started_at", "finished_at", "expired_at"),
    )
    blame = serializers.ChoiceField(BLAMED, allow_blank=True)


class RunDetail(RunRow):
    """A boot with all that was noted: where it ran, what it printed, what the kernel complained about."""

    columns: Names = (
        *(*RunRow.columns, "problem_detail", "line", "environment", "extras", "counters"),
        *("unavailable", "findings"),
    )
    unavailable = Listed()
    findings = Listed()


class RunFilters(Filters):
    """Filters by what a boot belongs to, and by its state."""

    rows = RunRow
    names = (
        *("experiment", "variant", "case", "build", "block", "workload", "target", "purpose", "state"),
        "outcome",
    )
    outcome = WordFilter(Outcome, method="with_outcome")

    def with_outcome(self, queryset: QuerySet[Any], name: str, value: str) -> QuerySet[Any]:
        """Boots with an outcome; those other than "finished" are among the failed ones, which have an index."""
        rows = queryset.filter(outcome=value)
        return rows if value == Outcome.FINISHED else rows.filter(state=RunState.FAILED)


class Runs(Resource):
    """Boots."""

    queryset = Run.objects.all()
    rows, whole = RunRow, RunDetail
    filterset_class: Any = RunFilters
    search_fields = ("variant__name", "case__workload", "problem")
    ordering_fields = ("id", "experiment", "position", "state", "started_at", "finished_at")
    ordering = ("-pk",)
    also_answers: ClassVar = {"console": (410,)}

    @told_as_log
    @action(detail=True, content_negotiation_class=Plain, filter_backends=(), pagination_class=None)
    def console(self, request: Request, id: int) -> HttpResponse:  # noqa: A002  the address says so
        """Return the console from a byte on."""
        run = one_row(Run.objects.filter(pk=id).only("console", "state", "expired_at"), f"run {id}")
        is_over = run.state not in (RunState.QUEUED, RunState.RUNNING)
        return log_from(request, KeptFile(run.console, run.expired_at), over=is_over)
