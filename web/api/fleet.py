# SPDX-License-Identifier: GPL-2.0-or-later
"""Workers, queues, claims and answers that came too late, for operators."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, ClassVar

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from lab.models import LateAnswer, Worker
from lab.operations.fleet_state import STATES, GroupLine, fleet_state
from lab.operations.lab_faults import experiments_of
from lab.runs.claim import Kind
from lab.runs.hand_back import take_back
from lab.runs.open_claims import ClaimLine, open_claims
from lab.runs.queue_list import QueueLine, queue_lines
from lab.runs.workers import reported_workers
from lab.targets.fleet import read_fleet
from web.api.auth import caller
from web.api.filters import PAGING, refuse_others
from web.api.resource import Resource, View
from web.api.shapes import DataShape, Row, TableRow


class WorkerRow(TableRow):
    """A process that takes work. idle_reason: why it takes no work now; disk_free, disk_total: bytes of its working disk."""

    table = Worker
    columns = (
        *("id", "name", "host", "queues", "version", "started_at", "seen_at", "disk_free", "disk_total"),
        "idle_reason",
    )


class Workers(Resource):
    """Workers that reported in the last day."""

    queryset = Worker.objects.all()
    rows = WorkerRow
    filters = ("host",)
    search_fields = ("name", "version", "idle_reason")
    ordering_fields = ("id", "name", "seen_at")
    ordering = ("name", "pk")
    needed: ClassVar = {"list": "operate", "retrieve": "operate"}


class QueueShape(DataShape):
    """A queue. oldest_s: the age of its oldest item since it became ready; paused: workers that report why they take nothing."""

    of = QueueLine


class Queues(View):
    """Queues: waiting work and its workers."""

    serializer_class = QueueShape
    pagination_class = None
    needed: ClassVar = {"list": "operate"}

    def list(self, request: Request) -> Response:
        """Every queue, by name."""
        refuse_others(request, PAGING)
        return Response([asdict(queue_line) for queue_line in queue_lines(reported_workers(), read_fleet())])


@extend_schema_field(
    {
        "type": "object",
        "propertyNames": {"enum": list(STATES)},
        "additionalProperties": {"type": "integer", "minimum": 1},
    }
)
class TargetStates(serializers.JSONField):
    """Number of targets in each state that there is."""


class GroupShape(DataShape):
    """Equal targets; group: "" for targets in no group. finished: boots of the last day; failed: those lost by the lab."""

    of = GroupLine
    states = TargetStates()


class FleetShape(serializers.Serializer[Any]):
    """All targets by state and by group; those that need a person come first."""

    targets = serializers.IntegerField()
    states = TargetStates()
    groups = GroupShape(many=True)


class Fleet(View):
    """An overview of the targets: the beginning of the lab's page."""

    serializer_class = FleetShape
    pagination_class = None
    needed: ClassVar = {"show": "operate"}

    @extend_schema(responses=FleetShape)
    def show(self, request: Request) -> Response:
        """Return how many targets are in which state, by group."""
        refuse_others(request)
        fleet = fleet_state(reported_workers(), read_fleet())
        groups = [asdict(group) for group in fleet.groups]
        return Response({"targets": len(fleet.targets), "states": dict(fleet.states), "groups": groups})


class ClaimShape(DataShape):
    """A build or run that a worker holds. over: its lease has expired; left_s: seconds until it expires, negative afterwards."""

    of = ClaimLine
    kind = serializers.ChoiceField(LateAnswer.Kind.choices)


class Claims(View):
    """Claims: builds and boots in progress."""

    serializer_class = ClaimShape
    pagination_class = None
    needed: ClassVar = {"list": "operate", "destroy": "operate"}
    also_answers: ClassVar = {"destroy": (409,)}
    # "build" or "run", as the address says.
    kind: Kind = "run"

    def list(self, request: Request) -> Response:
        """Every claim, builds first."""
        refuse_others(request, PAGING)
        return Response([asdict(open_claim) for open_claim in open_claims()])

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, id: int) -> HttpResponse:  # noqa: A002  the address says so
        """Take a claim back: its work is queued again, its worker stops and discards its result."""
        take_back(by=caller(request), kind=self.kind, work=id)
        return HttpResponse(status=204)


class LateAnswerRow(TableRow):
    """An answer to a claim that the worker no longer held; nothing of the answer was written.

    work: the number of the build or run. experiment: for a build, the newest that uses it; null if it was deleted.
    target: where the run booted. said: the content of the answer. why: the state of the work by then.
    """

    table = LateAnswer
    columns = ("id", "kind", "work", "experiment", "target", "worker", "said", "why", "at")
    experiment = serializers.IntegerField(source="*", allow_null=True)


class LateAnswers(Resource):
    """The newest answers that were refused."""

    queryset = LateAnswer.objects.all()
    rows = LateAnswerRow
    filters = ("kind", "target", "worker")
    search_fields = ("worker", "target", "said", "why")
    ordering_fields = ("id", "at")
    ordering = ("-pk",)
    needed: ClassVar = {"list": "operate", "retrieve": "operate"}

    def completed(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Add the experiments."""
        experiments = experiments_of((row["kind"], row["work"]) for row in rows)
        for row in rows:
            row["experiment"] = experiments.get((row["kind"], row["work"]))
        return rows
