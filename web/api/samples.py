# SPDX-License-Identifier: GPL-2.0-or-later
"""Samples: single values, as they were measured."""

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from lab.models import Sample
from lab.models.states import Purpose
from web.api.filters import Filters, IdFilter, TextFilter, TruthFilter, WordFilter
from web.api.problems import ParameterRefused
from web.api.resource import Resource
from web.api.schema import Number


class SampleRow(serializers.Serializer[Any]):
    """One metric's value from one iteration, in the metric's own unit."""

    id = serializers.IntegerField()
    run = serializers.IntegerField(source="run_id")
    metric = serializers.CharField()
    iteration = serializers.IntegerField()
    warmup = serializers.BooleanField()
    value = Number()


class SampleFilters(Filters):
    """By what it was measured in."""

    run = IdFilter(field_name="run_id")
    experiment = IdFilter(field_name="run__experiment_id")
    variant = IdFilter(field_name="run__variant_id")
    case = IdFilter(field_name="run__case_id")
    metric = TextFilter(field_name="metric")
    iteration = IdFilter(field_name="iteration")
    warmup = TruthFilter(field_name="warmup")
    purpose = WordFilter(Purpose, field_name="run__purpose")


# One of these leaves few enough of all samples to look through for the other filters.
_BELONGS_TO = ("run", "experiment", "variant", "case")


class Samples(Resource):
    """Samples."""

    queryset = Sample.objects.all()
    rows = SampleRow
    filterset_class: Any = SampleFilters
    ordering_fields = ("id",)
    ordering = ("pk",)

    def list(self, request: Request) -> Response:
        """A page of them; by metric, iteration, warm-up or purpose only within what they belong to."""
        asked = request.query_params
        alone = [name for name in SampleFilters.base_filters if name in asked and name not in _BELONGS_TO]
        if alone and not any(name in asked for name in _BELONGS_TO):
            raise ParameterRefused(
                alone[0], f"also name what the samples belong to: {', '.join(_BELONGS_TO)}", 422
            )
        return super().list(request)
