# SPDX-License-Identifier: GPL-2.0-or-later
"""Variants: combinations of switches, each one build."""

from typing import Any

from rest_framework import serializers

from lab.models import Variant
from lab.models.states import Role, VariantState
from web.api.experiments import VariantBrief
from web.api.filters import Filters, IdFilter, TextFilter, WordFilter
from web.api.resource import Resource


class VariantRow(VariantBrief):
    """A variant."""

    experiment = serializers.IntegerField(source="experiment_id")
    commit = serializers.CharField(allow_blank=True)
    tree_id = serializers.CharField(allow_blank=True)


class VariantDetail(VariantRow):
    """A variant, with the long part of why it is not built."""

    problem_detail = serializers.CharField(allow_blank=True)


class VariantFilters(Filters):
    """By what it belongs to and how it stands."""

    experiment = IdFilter(field_name="experiment_id")
    build = IdFilter(field_name="build_id")
    name = TextFilter(field_name="name")
    role = WordFilter(Role)
    state = WordFilter(VariantState)
    commit = TextFilter(field_name="commit")


class Variants(Resource):
    """Variants."""

    queryset = Variant.objects.all()
    rows, whole = VariantRow, VariantDetail
    filterset_class: Any = VariantFilters
    search_fields = ("name",)
    ordering_fields = ("id", "experiment", "position", "name", "state")
    ordering = ("-pk",)
