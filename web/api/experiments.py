# SPDX-License-Identifier: GPL-2.0-or-later
"""Experiments: lists of them, one of them, and how to stop one."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, ClassVar

from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpResponse
from drf_spectacular.plumbing import resolve_type_hint
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from lab.comparisons.conclusion.collect import conclusion_data
from lab.comparisons.exports.formats import REPORT_FORMS
from lab.comparisons.page import comparison_data
from lab.comparisons.shape import ComparisonData, ConclusionData
from lab.errors import NeedsWorker
from lab.experiments.counts import count_experiments, exit_code
from lab.experiments.never_delete import keep_for
from lab.experiments.page import get_experiment
from lab.experiments.priority import PRIORITIES, priority_name, set_priority
from lab.experiments.progress import Activity, ExperimentProgress, QueuePlace
from lab.experiments.shown_description import shown_description, whole_description
from lab.models import Case, Comparison, Experiment, Switch, Variant
from lab.models.states import OPEN_EXPERIMENT, Role
from lab.runs.stalls import current_progress_of
from lab.statistics.verdict_words import VERDICTS
from lab.submission.rerun import cancel_for, hand_over_rerun, rerun_experiment
from web.api.auth import caller, scopes_of
from web.api.fields import Body, Word, taken
from web.api.filters import Filters, MomentFilter, TextFilter, WordFilter
from web.api.logs import as_file, form_named, told_as_file
from web.api.resource import Plain
from web.api.schema import Listed, Mapped
from web.api.shapes import DataShape, Names, Row, TableRow, finite, read_rows
from web.api.submission import KEY_HEADER, REPLAYED, RETRY_AFTER, DescriptionShape, FetchDetail, Submission


@extend_schema_field({"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}})
class Verdicts(serializers.JSONField):
    """Number of comparisons with each verdict."""


class ExperimentRow(TableRow):
    """An experiment as lists show it.

    kept: its files outlive the retention policy. group: any target of this group may boot it, and `target` is one of them; empty
    if only `target` may. verdicts: of primary metrics of candidates. exit_code: null while it is open.
    """

    table = Experiment
    columns: Names = (
        *("id", "url", "page", "name", "state", "problem", "headline", "kept", "tree", "base_name"),
        *("base_commit", "design", "target", "group", "priority", "clock", "submitter", "origin", "standing"),
        *("created_at", "started_at", "finished_at", "variants", "pruned", "boots_over", "boots_total"),
        *("verdicts", "exit_code"),
    )
    url = serializers.URLField(source="*", help_text="Its address in the API.")
    page = serializers.URLField(source="*", help_text="The address of its page.")
    headline = serializers.CharField(
        allow_blank=True, help_text="The conclusion in one line, once it has ended."
    )
    priority = serializers.ChoiceField(tuple(PRIORITIES))
    variants = serializers.IntegerField(source="*")
    pruned = serializers.IntegerField(source="*")
    boots_over = serializers.IntegerField(source="*")
    boots_total = serializers.IntegerField(source="*")
    verdicts = Verdicts(source="*")
    exit_code = serializers.IntegerField(source="*", allow_null=True, min_value=0, max_value=3)


class PriorityShape(Body):
    """The requested priority of an experiment."""

    priority = Word(tuple(PRIORITIES))


class SwitchShape(TableRow):
    """A patch or a config fragment; its text is at patches/."""

    table = Switch
    columns: Names = ("id", "position", "name", "kind", "title", "author", "link", "requires", "excludes")
    kind = serializers.ChoiceField(Switch.Kind.choices)


class CaseShape(TableRow):
    """A workload with its parameters."""

    table = Case
    columns: Names = ("id", "position", "workload", "preset", "params", "metrics")
    metrics = Listed()


class VariantBrief(TableRow):
    """A variant, as a part of its experiment."""

    table = Variant
    columns: Names = ("id", "position", "name", "switches", "role", "state", "build", "problem", "note")


class ActivityShape(DataShape):
    """A build or boot in progress."""

    of = Activity
    kind = serializers.ChoiceField(("build", "boot"))
    percent = serializers.IntegerField(
        allow_null=True, help_text="The share of a build's objects that are compiled; null if unknown."
    )


class QueuePlaceShape(DataShape):
    """The place of an experiment that waits for its turn; starts_s: seconds until then, null where it is unknown."""

    of = QueuePlace


class ProgressShape(DataShape):
    """The progress of an experiment. percent weighs a build as five boots; eta_s: null where nothing like it was done before."""

    of = ExperimentProgress
    without = ("experiment_id", "name", "state", "problem")
    stalled = serializers.CharField(
        allow_blank=True, help_text="The reason why no worker works on it; empty while one does."
    )
    way_out = serializers.CharField(
        allow_blank=True, help_text="How to get a stalled experiment going again."
    )
    queue = QueuePlaceShape(allow_null=True, help_text="Its place in the queue while it waits.")
    percent = serializers.IntegerField(min_value=0, max_value=100)


CONCLUSION: Any = resolve_type_hint(ConclusionData)  # type: ignore[no-untyped-call]


@extend_schema_field(CONCLUSION)
class ConclusionField(serializers.JSONField):
    """The conclusion of an experiment."""


class ExperimentDetail(ExperimentRow):
    """An experiment with its parts and its progress."""

    columns: Names = (
        *(*ExperimentRow.columns, "boots", "sequential", "iterations", "warmup", "profile", "verify", "seed"),
        *("digest", "base_tree_id", "switches", "cases", "parts", "progress", "conclusion", "description"),
    )
    switches = SwitchShape(many=True, source="*")
    cases = CaseShape(many=True, source="*")
    parts = VariantBrief(many=True, source="*", help_text="The variants, base first.")
    progress = ProgressShape(source="*")
    conclusion = ConclusionField(
        source="*",
        help_text="The effect of each variant on each case, with its confidence, and the next step, in words.",
    )
    description = Mapped(
        source="*",
        help_text="Every field of the description, with its default if it was not set; patch texts are at description/.",
    )


COMPARISON: Any = resolve_type_hint(ComparisonData)  # type: ignore[no-untyped-call]


class ExperimentFilters(Filters):
    """`?verdict=regression`: experiments in which a candidate's primary metric has this verdict."""

    rows = ExperimentRow
    names = (
        *("state", "tree", "target", "group", "priority", "submitter", "standing", "digest", "commit"),
        *("origin", "verdict", "created_after", "created_before"),
    )
    priority = WordFilter(PRIORITIES, method="with_priority")
    commit = TextFilter(field_name="base_commit")
    verdict = WordFilter(VERDICTS, method="with_verdict")
    created_after = MomentFilter(field_name="created_at", lookup_expr="gte")
    created_before = MomentFilter(field_name="created_at", lookup_expr="lt")

    def with_priority(self, queryset: QuerySet[Any], name: str, value: str) -> QuerySet[Any]:
        """Return the experiments with this priority."""
        return queryset.filter(priority=PRIORITIES[value])

    def with_verdict(self, queryset: QuerySet[Any], name: str, value: str) -> QuerySet[Any]:
        """Return the experiments with this verdict."""
        judged = Comparison.objects.filter(
            experiment=OuterRef("pk"), primary=True, variant__role=Role.CANDIDATE, verdict=value
        )
        return queryset.filter(Exists(judged))


class Experiments(Submission):
    """Experiments."""

    queryset = Experiment.objects.all()
    rows, whole = ExperimentRow, ExperimentDetail
    filterset_class = ExperimentFilters
    search_fields = ("name", "tree__name", "submitter__username", "base_name")
    ordering_fields = ("id", "name", "state", "created_at", "finished_at")
    ordering = ("-pk",)
    needed: ClassVar = dict.fromkeys(
        ("create", "preview", "cancel", "rerun", "priority", "keep", "unkeep"), "submit"
    )
    also_answers: ClassVar = {
        "cancel": (409,),
        "priority": (409,),
        "rerun": (409, 422, 503),
        "create": (409, 503),
        "preview": (503,),
    }

    @extend_schema(
        request=DescriptionShape,
        parameters=[KEY_HEADER, REPLAYED, RETRY_AFTER],
        responses={201: ExperimentDetail, 200: ExperimentDetail, 202: FetchDetail},
    )
    def create(self, request: Request) -> Response:
        """Queue an experiment; answers 200 if the Idempotency-Key belongs to an existing experiment.

        Answers 202 with a fetch to poll if a worker has to get the tree first.
        """
        return super().create(request)

    def completed(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Add addresses and counts."""
        counted = count_experiments([row["id"] for row in rows])
        root = self.request.build_absolute_uri("/")
        for row in rows:
            counts = counted[row["id"]]
            row["url"] = f"{root}api/v1/experiments/{row['id']}/"
            row["page"] = f"{root}experiments/{row['id']}/"
            row["priority"] = priority_name(row["priority"])
            row["exit_code"] = None if row["state"] in OPEN_EXPERIMENT else exit_code(row["state"], counts)
            row |= asdict(counts)
            del row["unjudged"]
        return rows

    def completed_detail(self, row: Row) -> Row:
        """Add switches, cases, variants, progress, the conclusion and the description."""
        row["switches"] = read_rows(Switch.objects.filter(experiment=row["id"]), SwitchShape)
        row["cases"] = read_rows(Case.objects.filter(experiment=row["id"]), CaseShape)
        row["parts"] = read_rows(Variant.objects.filter(experiment=row["id"]), VariantBrief)
        experiment = get_experiment(row["id"])
        progress = current_progress_of([experiment])[experiment.pk]
        row["progress"] = {**asdict(progress), "percent": progress.percent}
        for name in ("experiment_id", "name", "state", "problem"):
            del row["progress"][name]
        row["conclusion"] = finite(conclusion_data(experiment))
        row["description"] = finite(whole_description(experiment))
        return row

    @extend_schema(request=None, responses=ExperimentDetail)
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, id: int) -> Response:  # noqa: A002  the address says so
        """Cancel it and all its unfinished work; its results so far stay. For its submitter and operators."""
        cancel_for(experiment_id=id, by=caller(request), scopes=scopes_of(request))
        return Response(self.full_row(id))

    @extend_schema(request=PriorityShape, responses=ExperimentDetail)
    @action(detail=True, methods=["post"])
    def priority(self, request: Request, id: int) -> Response:  # noqa: A002
        """Set its priority while it is open. For its submitter and operators; only operators may set it above normal."""
        asked, by = taken(PriorityShape, request)["priority"], caller(request)
        set_priority(experiment_id=id, priority=asked, by=by, scopes=scopes_of(request))
        return Response(self.full_row(id))

    @extend_schema(
        request=None,
        parameters=[RETRY_AFTER],
        responses={201: ExperimentDetail, 200: ExperimentDetail, 202: FetchDetail},
    )
    @action(detail=True, methods=["post"])
    def rerun(self, request: Request, id: int) -> Response:  # noqa: A002
        """Queue the same description again; answers 200 if your last re-run of it is unfinished.

        Answers 202 with a fetch to poll if a worker has to get the tree first.
        """
        by = caller(request)
        try:
            rerun = rerun_experiment(experiment_id=id, by=by)
        except NeedsWorker:
            return self._handed_over(hand_over_rerun(experiment_id=id, by=by))
        shown = self.full_row(rerun.experiment.pk)
        status = 200 if rerun.already else 201
        return Response(shown, status=status, headers={"Location": shown["url"]})

    @extend_schema(request=None, responses=ExperimentDetail)
    @action(detail=True, methods=["post"])
    def keep(self, request: Request, id: int) -> Response:  # noqa: A002
        """Keep its files and kernels, whatever the retention policy says. For its submitter and operators."""
        return self._kept(request, id, kept=True)

    @extend_schema(request=None, responses=ExperimentDetail)
    @action(detail=True, methods=["post"])
    def unkeep(self, request: Request, id: int) -> Response:  # noqa: A002
        """Leave its files and kernels to the retention policy again."""
        return self._kept(request, id, kept=False)

    def _kept(self, request: Request, experiment_id: int, *, kept: bool) -> Response:
        keep_for(experiment_id=experiment_id, by=caller(request), kept=kept, scopes=scopes_of(request))
        return Response(self.full_row(experiment_id))

    @extend_schema(responses={(200, "application/json"): COMPARISON})
    @action(detail=True)
    def comparison(self, request: Request, id: int) -> Response:  # noqa: A002
        """All variants side by side: what `labctl compare --format json` prints."""
        return Response(finite(comparison_data(id, link=settings.PUBLIC_URL)))

    @told_as_file({name: form.media_type for name, form in REPORT_FORMS.items()}, "experiments_export")
    @action(detail=True, url_path="export/<str:form>", content_negotiation_class=Plain)
    def export(self, request: Request, id: int, form: str) -> HttpResponse:  # noqa: A002
        """The comparison as a file, in the given format."""
        wanted = form_named(REPORT_FORMS, form, "a comparison")
        text = wanted.write(id, link=settings.PUBLIC_URL)
        return as_file(text, wanted.media_type, wanted.file_name(id))

    @extend_schema(responses=OpenApiTypes.OBJECT)
    @action(detail=True, url_path="description")
    def submitted(self, request: Request, id: int) -> Response:  # noqa: A002
        """Return the submitted description with the texts of patches; it can be submitted again."""
        return Response(finite(shown_description(id)))
