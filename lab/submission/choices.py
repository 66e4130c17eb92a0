# SPDX-License-Identifier: GPL-2.0-or-later
"""Read what a submission may name: trees, targets, catalogued switches, workloads with their presets."""

from collections.abc import Mapping
from dataclasses import dataclass

from kernels.patches.catalog import load_catalog as load_switches
from kernels.trees.tree import DEFAULT_ARCHIVES
from lab.experiments.spec import DESIGNS
from lab.models import Target, Tree
from workloads.catalog import load_catalog as load_workloads


@dataclass(frozen=True, slots=True)
class TreeChoice:
    """A tree and the revision taken when none is named, empty while the tree was never used."""

    name: str
    default_revision: str


@dataclass(frozen=True, slots=True)
class SwitchChoice:
    """A switch of the catalogue; trees are those it is made for."""

    name: str
    title: str
    author: str
    link: str
    trees: tuple[str, ...]
    requires: tuple[str, ...]
    excludes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ParamChoice:
    """A workload's parameter: what may be given, and what it means."""

    name: str
    valid: str
    help: str


@dataclass(frozen=True, slots=True)
class PresetChoice:
    """A named set of parameters."""

    name: str
    params: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class WorkloadChoice:
    """A workload as a form offers it."""

    name: str
    summary: str
    presets: tuple[PresetChoice, ...]
    params: tuple[ParamChoice, ...]


@dataclass(frozen=True, slots=True)
class SubmissionChoices:
    """All that a submission form offers."""

    trees: tuple[TreeChoice, ...]
    targets: tuple[str, ...]
    designs: tuple[str, ...]
    switches: tuple[SwitchChoice, ...]
    workloads: tuple[WorkloadChoice, ...]


def _places() -> dict[str, None]:
    """The names of targets, then those of groups of them."""
    enabled = Target.objects.filter(enabled=True).order_by("name")
    groups = sorted(set(enabled.exclude(group="").values_list("group", flat=True)))
    return dict.fromkeys([*enabled.values_list("name", flat=True), *groups])


def submission_choices() -> SubmissionChoices:
    """Return what can be submitted here and now."""
    return SubmissionChoices(
        trees=tuple(TreeChoice(name, revision) for name, revision in sorted(_trees().items())),
        targets=tuple(_places()),
        designs=DESIGNS,
        switches=tuple(
            SwitchChoice(
                name=entry.name,
                title=entry.title,
                author=entry.author,
                link=entry.link,
                trees=tuple(entry.trees),
                requires=tuple(entry.requires),
                excludes=tuple(entry.excludes),
            )
            for entry in load_switches().values()
        ),
        workloads=tuple(
            WorkloadChoice(
                name=workload.name,
                summary=workload.summary,
                presets=tuple(PresetChoice(name, dict(params)) for name, params in workload.presets.items()),
                params=tuple(
                    ParamChoice(param.name, param.valid, param.help) for param in workload.params.values()
                ),
            )
            for workload in load_workloads().values()
        ),
    )


def _trees() -> dict[str, str]:
    """Trees by name with their default revision: those that are in the tables, and the default ones."""
    return dict.fromkeys(DEFAULT_ARCHIVES, "") | dict(
        Tree.objects.order_by("pk").values_list("name", "default_revision")
    )
