# SPDX-License-Identifier: GPL-2.0-or-later
"""Comparisons: one metric of one variant against the base, and its verdict; the samples behind them."""

from typing import ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from lab.models import Comparison, Sample
from web.api.problems import ParameterRefused
from web.api.resource import Resource
from web.api.shapes import TableRow


class ComparisonRow(TableRow):
    """Ratios are candidate over base; low and high bound 95 %, or more where boots may stop early."""

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


class SampleRow(TableRow):
    """One metric's value from one iteration, in the metric's own unit."""

    table = Sample
    paths: ClassVar = {
        "experiment": "run__experiment",
        "variant": "run__variant",
        "case": "run__case",
        "purpose": "run__purpose",
    }
    columns = ("id", "run", "metric", "iteration", "warmup", "value")


# A filter by one of these leaves few enough samples for the other filters to search.
_BELONGS_TO = ("run", "experiment", "variant", "case")


class Samples(Resource):
    """Samples."""

    queryset = Sample.objects.all()
    rows = SampleRow
    filters = (*_BELONGS_TO, "metric", "iteration", "warmup", "purpose")
    ordering_fields = ("id",)
    ordering = ("pk",)

    def list(self, request: Request) -> Response:
        """A page of samples; to filter by metric, iteration, warm-up or purpose, also name a run, experiment, variant or case."""
        asked = request.query_params
        alone = [name for name in self.filters if name in asked and name not in _BELONGS_TO]
        if alone and not any(name in asked for name in _BELONGS_TO):
            raise ParameterRefused(
                alone[0], f"also name what the samples belong to: {', '.join(_BELONGS_TO)}", 422
            )
        return super().list(request)
