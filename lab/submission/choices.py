# SPDX-License-Identifier: GPL-2.0-or-later
"""Read what a submission may name: trees, targets, catalogued switches, workloads with their presets."""

from collections.abc import Mapping
from dataclasses import dataclass

from kernels.patches.catalog import CatalogEntry
from kernels.patches.catalog import load_catalog as load_switches
from kernels.trees.tree import DEFAULT_ARCHIVES
from lab.models import Target, Tree
from workloads.catalog import Workload
from workloads.catalog import load_catalog as load_workloads


@dataclass(frozen=True, slots=True)
class SubmissionChoices:
    """All that a submission form offers, by name. targets: and groups of them.

    trees: maps each tree to its default revision, "" if it has none yet.
    """

    trees: Mapping[str, str]
    targets: tuple[str, ...]
    switches: Mapping[str, CatalogEntry]
    workloads: Mapping[str, Workload]


def submission_choices() -> SubmissionChoices:
    """Return what can be submitted here and now."""
    return SubmissionChoices(_trees(), tuple(_places()), load_switches(), load_workloads())


def _trees() -> dict[str, str]:
    """The trees in the tables, and the default ones."""
    known = Tree.objects.order_by("pk").values_list("name", "default_revision")
    return dict(sorted((dict.fromkeys(DEFAULT_ARCHIVES, "") | dict(known)).items()))


def _places() -> dict[str, None]:
    """The names of targets, then those of groups of them."""
    enabled = Target.objects.filter(enabled=True).order_by("name")
    groups = sorted(set(enabled.exclude(group="").values_list("group", flat=True)))
    return dict.fromkeys([*enabled.values_list("name", flat=True), *groups])
