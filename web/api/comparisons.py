# SPDX-License-Identifier: GPL-2.0-or-later
"""Comparisons: one metric of one variant against the base, and its verdict."""

from typing import Any

from rest_framework import serializers

from lab.models import Comparison
from lab.models.states import Role
from lab.statistics.verdict_words import CHOICES, VERDICTS
from web.api.filters import Filters, IdFilter, TextFilter, TruthFilter, WordFilter
from web.api.resource import Resource
from web.api.schema import Number, Texts


class ComparisonRow(serializers.Serializer[Any]):
    """Ratios are candidate over base; low and high bound 95 %."""

    id = serializers.IntegerField()
    experiment = serializers.IntegerField(source="experiment_id")
    case = serializers.IntegerField(source="case_id")
    workload = serializers.CharField(source="case.workload")
    preset = serializers.CharField(source="case.preset")
    variant = serializers.IntegerField(source="variant_id")
    variant_name = serializers.CharField(source="variant.name")
    role = serializers.ChoiceField(Role.choices, source="variant.role")
    metric = serializers.CharField()
    unit = serializers.CharField(allow_blank=True)
    better = serializers.CharField()
    primary = serializers.BooleanField()
    boots = serializers.IntegerField()
    base_median = Number()
    median = Number()
    ratio = Number()
    low = Number()
    high = Number()
    p_value = Number()
    q_value = Number()
    effect = Number()
    floor = Number()
    partial = serializers.BooleanField()  # type: ignore[assignment]
    verdict = serializers.ChoiceField(CHOICES)
    boots_needed = serializers.IntegerField(allow_null=True)
    reason = serializers.CharField(allow_blank=True)
    notes = Texts()
    margin = Number()
    method = serializers.CharField(allow_blank=True)
    created_at = serializers.DateTimeField()


class ComparisonFilters(Filters):
    """By what is compared and what came out."""

    experiment = IdFilter(field_name="experiment_id")
    case = IdFilter(field_name="case_id")
    variant = IdFilter(field_name="variant_id")
    role = WordFilter(Role, field_name="variant__role")
    workload = TextFilter(field_name="case__workload")
    metric = TextFilter(field_name="metric")
    verdict = WordFilter(VERDICTS)
    primary = TruthFilter(field_name="primary")
    partial = TruthFilter(field_name="partial")


class Comparisons(Resource):
    """Comparisons."""

    queryset = Comparison.objects.all()
    rows = ComparisonRow
    filterset_class: Any = ComparisonFilters
    search_fields = ("metric", "variant__name", "case__workload")
    ordering_fields = ("id", "experiment", "ratio", "q_value", "created_at")
    ordering = ("-pk",)
