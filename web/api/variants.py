# SPDX-License-Identifier: GPL-2.0-or-later
"""Variants: combinations of switches, each one build."""

from lab.models import Variant
from web.api.experiments import VariantBrief
from web.api.resource import Resource
from web.api.shapes import Names


class VariantRow(VariantBrief):
    """A variant."""

    columns: Names = (*VariantBrief.columns, "experiment", "commit", "tree_id")


class VariantDetail(VariantRow):
    """A variant, with the long part of why it is not built."""

    columns: Names = (*VariantRow.columns, "problem_detail")


class Variants(Resource):
    """Variants."""

    queryset = Variant.objects.all()
    rows, whole = VariantRow, VariantDetail
    filters = ("experiment", "build", "name", "role", "state", "commit")
    search_fields = ("name",)
    ordering_fields = ("id", "experiment", "position", "name", "state")
    ordering = ("-pk",)
