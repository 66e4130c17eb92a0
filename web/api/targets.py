# SPDX-License-Identifier: GPL-2.0-or-later
"""Targets: machines that boot kernels. Operators add and change them, and see how they are reached."""

from collections.abc import Mapping
from typing import Any, ClassVar

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from lab.models import HealthCheck, Target
from lab.people.permissions import may
from lab.targets.changes import (
    LEAST_MIB,
    LONGEST_REMARK,
    MOST_MIB,
    MOST_VCPUS,
    TargetFields,
    add_target,
    change_target,
    remove_target,
)
from lab.targets.drivers import DRIVERS
from lab.targets.health_checks import ask_check
from lab.targets.quarantine import release_target
from web.api.auth import caller, scopes_of
from web.api.fields import NO_NUL, Body, Text, Truth, Whole, Word, taken
from web.api.resource import Resource
from web.api.schema import Mapped
from web.api.shapes import Names, Row, TableRow, read_rows

# The most checks that a target's own address shows.
LATEST = 50


class TargetRow(TableRow):
    """One machine. faults: consecutive faults of the lab; quarantined_at: when it stopped booting because of them."""

    table = Target
    columns: Names = (
        *("id", "name", "group", "driver", "vcpus", "memory_mib", "enabled", "tuning", "faults"),
        *("quarantined_at", "quarantine_reason", "created_at"),
    )


class CheckRow(TableRow):
    """A known-good kernel booted with the calibration workload. value: in the unit of the metric."""

    table = HealthCheck
    columns: Names = ("at", "ok", "problem", "metric", "value")


class TargetDetail(TargetRow):
    """A machine with its latest health checks, its access and a remark; access and remark are null except for operators."""

    columns: Names = (*TargetRow.columns, "access", "remark", "checks")
    access = Mapped(allow_null=True)
    remark = serializers.CharField(allow_null=True, allow_blank=True)
    checks = CheckRow(many=True, source="*")


_NAMES = {"propertyNames": {"pattern": NO_NUL}}
_PLAIN = [{"type": "string", "pattern": NO_NUL}, {"type": "number"}, {"type": "boolean"}, {"type": "null"}]
_LIST = {"type": "array", "items": {"anyOf": _PLAIN}}
_OBJECT = {"type": "object", **_NAMES, "additionalProperties": {"anyOf": _PLAIN}}


@extend_schema_field(
    {"type": "object", **_NAMES, "additionalProperties": {"anyOf": [*_PLAIN, _LIST, _OBJECT]}}
)
class Part(serializers.JSONField):
    """A JSON object in a body, whose values are plain, or lists or objects of plain ones: no part of a target is deeper."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """The object. Raises ValidationError."""
        if not isinstance(data, Mapping):
            raise serializers.ValidationError("an object is expected")
        for name, value in data.items():
            inside = (
                value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
            )
            if any(isinstance(member, Mapping | list) for member in inside):
                raise serializers.ValidationError(
                    f"{str(name)[:40]}: its fields must not contain lists or objects"
                )
        return dict(data)


class WantedTarget(Body):
    """The requested target; docs/howto/metal.md describes access and tuning. A change replaces each as a whole."""

    name = Text(min_length=1, max_length=63)
    driver = Word(tuple(DRIVERS), default="libvirt")
    group = Text(max_length=63, default="")
    vcpus = Whole(min_value=1, max_value=MOST_VCPUS, default=2)
    memory_mib = Whole(min_value=LEAST_MIB, max_value=MOST_MIB, default=1024)
    enabled = Truth(default=True)
    remark = Text(max_length=LONGEST_REMARK, default="")
    access = Part(default=dict)
    tuning = Part(default=dict)


class Targets(Resource):
    """Targets."""

    queryset = Target.objects.all()
    rows, whole = TargetRow, TargetDetail
    filters = ("name", "group", "driver", "enabled")
    search_fields = ("name", "group")
    ordering_fields = ("id", "name", "group")
    ordering = ("name", "pk")
    needed: ClassVar = dict.fromkeys(("create", "partial_update", "destroy", "release", "check"), "operate")
    also_answers: ClassVar = {"destroy": (422,), "check": (422,)}

    def completed_detail(self, row: Row) -> Row:
        """Add its checks, and hide its access and remark from all but operators."""
        checks = (
            HealthCheck.objects.filter(target=row["id"]).order_by("-at", "-pk").values_list("pk", flat=True)
        )
        row["checks"] = read_rows(HealthCheck.objects.all(), CheckRow, list(checks[:LATEST]))
        if not may(self.request.user, "operate", scopes=scopes_of(self.request)):
            row["access"] = row["remark"] = None
        return row

    @extend_schema(request=WantedTarget, responses={201: TargetDetail})
    def create(self, request: Request) -> Response:
        """Add a machine."""
        row = add_target(by=caller(request), wanted=TargetFields(**taken(WantedTarget, request)))
        return Response(self.full_row(row.pk), status=201)

    @extend_schema(request=WantedTarget, responses=TargetDetail)
    def partial_update(self, request: Request, id: int) -> Response:  # noqa: A002  the address says so
        """Change the given fields; a running boot finishes with the old ones."""
        changes = taken(WantedTarget, request, partial=True)
        change_target(by=caller(request), target_id=id, changes=changes)
        return Response(self.full_row(id))

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, id: int) -> HttpResponse:  # noqa: A002
        """Forget it, if nothing was ever booted there."""
        remove_target(by=caller(request), target_id=id)
        return HttpResponse(status=204)

    @extend_schema(request=None, responses=TargetDetail)
    @action(detail=True, methods=["post"])
    def release(self, request: Request, id: int) -> Response:  # noqa: A002
        """End its quarantine: it boots again."""
        release_target(target_id=id, by=caller(request))
        return Response(self.full_row(id))

    @extend_schema(request=None, responses=TargetDetail)
    @action(detail=True, methods=["post"])
    def check(self, request: Request, id: int) -> Response:  # noqa: A002
        """Check its health as soon as it is idle."""
        ask_check(by=caller(request), target_id=id)
        return Response(self.full_row(id))
