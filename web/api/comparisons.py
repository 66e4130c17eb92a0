# SPDX-License-Identifier: GPL-2.0-or-later
"""Comparisons: one metric of one variant against the base, and its verdict."""

from typing import ClassVar

from lab.models import Comparison
from web.api.resource import Resource
from web.api.shapes import TableRow


class ComparisonRow(TableRow):
    """Ratios are candidate over base; low and high bound 95 %."""

    table = Comparison
    paths: ClassVar = {
        "workload": "case__workload",
        "preset": "case__preset",
        "variant_name": "variant__name",
        "role": "variant__role",
    }
    columns = (
        *("id", "experiment", "case", "workload", "preset", "variant", "variant_name", "role", "metric"),
        *("unit", "better", "primary", "boots", "base_median", "median", "ratio", "low", "high", "p_value"),
        *("q_value", "effect", "floor", "partial", "verdict", "boots_needed", "reason", "notes", "margin"),
        *("method", "created_at"),
    )


class Comparisons(Resource):
    """Comparisons."""

    queryset = Comparison.objects.all()
    rows = ComparisonRow
    filters = (
        *("experiment", "case", "variant", "role", "workload", "metric", "verdict", "primary", "partial"),
    )
    search_fields = ("metric", "variant__name", "case__workload")
    ordering_fields = ("id", "experiment", "ratio", "q_value", "created_at")
    ordering = ("-pk",)
