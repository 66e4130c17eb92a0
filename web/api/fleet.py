# SPDX-License-Identifier: GPL-2.0-or-later
"""Workers, queues, claims and answers that came too late, for operators."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, ClassVar, cast

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from lab.models import LateAnswer, User, Worker
from lab.operations.fleet_state import STATES, fleet_state
from lab.operations.lab_faults import experiments_of
from lab.runs.claim import Kind
from lab.runs.open_claims import open_claims
from lab.runs.queue_list import queue_lines
from lab.runs.take_back import take_back
from lab.runs.workers import reported_workers
from web.api.filters import Filters, TextFilter, WordFilter
from web.api.resource import Resource, View
from web.api.rows import Row
from web.api.schema import Number, Texts


class WorkerRow(serializers.Serializer[Any]):
    """A process that takes work. idle_reason: why it takes none now; disk: bytes where it works."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    host = serializers.CharField()
    queues = Texts()
    version = serializers.CharField(allow_blank=True)
    started_at = serializers.DateTimeField()
    seen_at = serializers.DateTimeField()
    disk_free = serializers.IntegerField(allow_null=True)
    disk_total = serializers.IntegerField(allow_null=True)
    idle_reason = serializers.CharField(allow_blank=True)


class WorkerFilters(Filters):
    """By its host."""

    host = TextFilter(field_name="host")


class Workers(Resource):
    """Workers that reported in the last day."""

    queryset = Worker.objects.all()
    rows = WorkerRow
    filterset_class: Any = WorkerFilters
    search_fields = ("name", "version", "idle_reason")
    ordering_fields = ("id", "name", "seen_at")
    ordering = ("name", "pk")
    needed: ClassVar = {"list": "operate", "retrieve": "operate"}


class QueueShape(serializers.Serializer[Any]):
    """A queue. oldest_s: how long the oldest in it could have been taken; paused: workers that say why they take nothing."""

    name = serializers.CharField()
    waiting = serializers.IntegerField()
    running = serializers.IntegerField()
    oldest_s = Number()
    workers = Texts()
    paused = Texts()


class Queues(View):
    """Queues: waiting work and its workers."""

    serializer_class = QueueShape
    pagination_class = None
    needed: ClassVar = {"list": "operate"}

    def list(self, request: Request) -> Response:
        """Every queue, by name."""
        return Response([asdict(queue_line) for queue_line in queue_lines()])


@extend_schema_field(
    {
        "type": "object",
        "propertyNames": {"enum": list(STATES)},
        "additionalProperties": {"type": "integer", "minimum": 1},
    }
)
class TargetStates(serializers.JSONField):
    """Number of targets in each state that there is."""


class GroupShape(serializers.Serializer[Any]):
    """Targets that are equal; group: "" for all that are in none. finished, failed: boots of the last day, and lost by the lab."""

    group = serializers.CharField(allow_blank=True)
    targets = serializers.IntegerField()
    states = TargetStates()
    waiting = serializers.IntegerField()
    finished = serializers.IntegerField()
    failed = serializers.IntegerField()


class FleetShape(serializers.Serializer[Any]):
    """All targets by state and by group, what needs a person first."""

    targets = serializers.IntegerField()
    states = TargetStates()
    groups = GroupShape(many=True)


class Fleet(View):
    """The targets in one look: what the lab's page begins with."""

    serializer_class = FleetShape
    pagination_class = None
    needed: ClassVar = {"show": "operate"}

    @extend_schema(responses=FleetShape)
    def show(self, request: Request) -> Response:
        """Return how many targets are in which state, by group."""
        fleet = fleet_state(reported_workers())
        groups = [asdict(group) for group in fleet.groups]
        return Response({"targets": len(fleet.targets), "states": dict(fleet.states), "groups": groups})


class ClaimShape(serializers.Serializer[Any]):
    """A build or run that a worker holds. over: its lease ran out; left_s: until then, negative since."""

    kind = serializers.ChoiceField(LateAnswer.Kind.choices)
    id = serializers.IntegerField()
    label = serializers.CharField()  # type: ignore[assignment]  # a column, not the field's own
    claimed_by = serializers.CharField()
    started_at = serializers.DateTimeField(allow_null=True)
    lease_until = serializers.DateTimeField(allow_null=True)
    over = serializers.BooleanField()
    lease = serializers.CharField()
    attempt = serializers.IntegerField()
    left_s = Number()
    target = serializers.CharField(allow_blank=True)


class Claims(View):
    """Claims: builds and boots in progress."""

    serializer_class = ClaimShape
    pagination_class = None
    needed: ClassVar = {"list": "operate", "destroy": "operate"}
    also_answers: ClassVar = {"destroy": (409,)}
    # "build" or "run": told by the address.
    kind: Kind = "run"

    def list(self, request: Request) -> Response:
        """Every claim, builds first."""
        return Response([asdict(open_claim) for open_claim in open_claims()])

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, id: int) -> HttpResponse:  # noqa: A002  the address says so
        """Take a claim back: its work is queued again, its worker stops and discards its result."""
        take_back(by=cast("User", request.user), kind=self.kind, work=id)
        return HttpResponse(status=204)


class LateAnswerRow(serializers.Serializer[Any]):
    """An answer to a claim that was not held any more; nothing of it was written.

    work: the number of the build or run. experiment: of a build the newest that uses it; null where it was deleted.
    target: where the run booted. said: what the answer was. why: what had become of the work.
    """

    id = serializers.IntegerField()
    kind = serializers.ChoiceField(LateAnswer.Kind.choices)
    work = serializers.IntegerField()
    experiment = serializers.IntegerField(source="*", allow_null=True)
    target = serializers.CharField(allow_blank=True)
    worker = serializers.CharField()
    said = serializers.CharField()
    why = serializers.CharField()
    at = serializers.DateTimeField()


class LateAnswerFilters(Filters):
    """By what was answered, and where from."""

    kind = WordFilter(LateAnswer.Kind)
    target = TextFilter(field_name="target")
    worker = TextFilter(field_name="worker")


class LateAnswers(Resource):
    """The newest answers that were refused."""

    queryset = LateAnswer.objects.all()
    rows = LateAnswerRow
    filterset_class: Any = LateAnswerFilters
    search_fields = ("worker", "target", "said", "why")
    ordering_fields = ("id", "at")
    ordering = ("-pk",)
    needed: ClassVar = {"list": "operate", "retrieve": "operate"}

    def completed(self, rows: Sequence[Row]) -> Sequence[Row]:
        """With the experiments."""
        found = experiments_of((row["kind"], row["work"]) for row in rows)
        for row in rows:
            row["experiment"] = found.get((row["kind"], row["work"]))
        return rows
