# SPDX-License-Identifier: GPL-2.0-or-later
"""Samples: single values, as they were measured."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from lab.models import Sample
from lab.models.states import Purpose
from web.api.filters import Filters, IdFilter, TextFilter, TruthFilter, WordFilter
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


class Samples(Resource):
    """Samples."""

    queryset = Sample.objects.all()
    rows = SampleRow
    filterset_class: Any = SampleFilters
    ordering_fields = ("id",)
    ordering = ("pk",)
