# SPDX-License-Identifier: GPL-2.0-or-later
"""Read what a submission may name (trees, targets, catalogued switches, workloads), and what was measured last."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kernels.patches.catalog import CatalogEntry
from kernels.patches.catalog import load_catalog as load_switches
from kernels.trees.tree import DEFAULT_ARCHIVES
from lab.models import Experiment, Target, Tree, User
from lab.models.states import ExperimentState
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


@dataclass(frozen=True, slots=True)
class UsualChoices:
    """The choices of the last submission; empty without one. cases: workloads with their presets."""

    tree: str = ""
    target: str = ""
    cases: tuple[tuple[str, str], ...] = ()


def usual_choices(by: User | None) -> UsualChoices:
    """Return the choices of a person's newest experiment, or of the lab's newest one where they have none."""
    rows = Experiment.objects.order_by("-pk").select_related("target")
    newest = (by and rows.filter(submitter=by).first()) or rows.first()
    if newest is None:
        return UsualChoices()
    cases = [case for case in newest.spec.get("cases", ()) if isinstance(case, dict)]
    return UsualChoices(
        tree=str(newest.spec.get("tree") or ""),
        target=newest.group or newest.target.name,
        cases=tuple((str(case.get("workload")), str(case.get("preset", "small"))) for case in cases),
    )


# Examples are pasted into a shell and into YAML; any other name would have to be quoted there.
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,99}")


@dataclass(frozen=True, slots=True)
class NewestBase:
    """A tree's name, a revision of it, and WORKLOAD:PRESET."""

    tree: str = "debian-6.1"
    revision: str = "v6.1"
    workload: str = "showgids:small"


def newest_base() -> NewestBase:
    """Return the base of the newest finished experiment, or the one of the documentation."""
    rows = Experiment.objects.filter(state=ExperimentState.DONE).select_related("tree").order_by("-pk")
    row = rows.defer("spec").first()
    case = row.cases.first() if row else None
    if row is None or case is None:
        return NewestBase()
    base = NewestBase(row.tree.name, row.base_name, f"{case.workload}:{case.preset}")
    names = (base.tree, base.revision, *base.workload.split(":"))
    return base if all(_PLAIN.fullmatch(name) for name in names) else NewestBase()
