# SPDX-License-Identifier: GPL-2.0-or-later
"""Samples: single values, as they were measured."""

from typing import ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from lab.models import Sample
from web.api.problems import ParameterRefused
from web.api.resource import Resource
from web.api.shapes import TableRow


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


# One of these leaves few enough of all samples to look through for the other filters.
_BELONGS_TO = ("run", "experiment", "variant", "case")


class Samples(Resource):
    """Samples."""

    queryset = Sample.objects.all()
    rows = SampleRow
    filters = (*_BELONGS_TO, "metric", "iteration", "warmup", "purpose")
    ordering_fields = ("id",)
    ordering = ("pk",)

    def list(self, request: Request) -> Response:
        """A page of them; by metric, iteration, warm-up or purpose only within what they belong to."""
        asked = request.query_params
        alone = [name for name in self.filters if name in asked and name not in _BELONGS_TO]
        if alone and not any(name in asked for name in _BELONGS_TO):
            raise ParameterRefused(
                alone[0], f"also name what the samples belong to: {', '.join(_BELONGS_TO)}", 422
            )
        return super().list(request)
