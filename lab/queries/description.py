# SPDX-License-Identifier: GPL-2.0-or-later
"""What an experiment was asked to do, as pages show it: its switches and its cases."""

from dataclasses import dataclass
from typing import Any

from kernels.git import hide_password
from kernels.stored import shown_diff
from lab.models import Case, Experiment, Switch
from lab.rerun import stored_description


@dataclass(frozen=True, slots=True)
class ClaimView:
    """What the catalogue says a switch moves, which way, and who says so."""

    workload: str
    metric: str
    direction: str
    source: str


@dataclass(frozen=True, slots=True)
class SwitchView:
    """A patch or config fragment of the experiment; report tells what intake repaired,
    notes which mails of a series it chose.

    text: a diff as kernels.stored keeps it.
    """

    name: str
    kind: str
    title: str
    author: str
    link: str
    text: str
    requires: tuple[str, ...]
    excludes: tuple[str, ...]
    report: tuple[str, ...]
    claims: tuple[ClaimView, ...]
    notes: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """The text for people: what is not UTF-8 or hides in it is an escape."""
        return shown_diff(self.text)


@dataclass(frozen=True, slots=True)
class CaseView:
    """A workload with its parameters."""

    id: int
    position: int
    workload: str
    preset: str
    params: dict[str, Any]

    @property
    def title(self) -> str:
        """Name a person reads: "showgids (smoke)"."""
        return f"{self.workload} ({self.preset})"


def case_views(experiment: Experiment) -> tuple[CaseView, ...]:
    """Return the experiment's cases in their order."""
    return tuple(case_view(case) for case in experiment.cases.all())


def case_view(case: Case) -> CaseView:
    """Return one case as pages show it."""
    return CaseView(case.pk, case.position, case.workload, case.preset, case.params)


def switch_view(switch: Switch) -> SwitchView:
    """Return one switch as pages show it."""
    return SwitchView(
        name=switch.name,
        kind=switch.kind,
        title=switch.title,
        author=switch.author,
        link=switch.link,
        text=switch.text,
        requires=tuple(switch.requires),
        excludes=tuple(switch.excludes),
        report=tuple(switch.report),
        claims=tuple(ClaimView(**claim) for claim in switch.claims),
        notes=tuple(switch.notes),
    )


def shown_description(experiment_id: int) -> dict[str, Any]:
    """Return the description as it can be submitted again; a password in its git URL is left out. Raises UnknownRow."""
    return without_password(stored_description(experiment_id))


def without_password(description: dict[str, Any]) -> dict[str, Any]:
    """Return a description whose git URL carries none."""
    git = description.get("git")
    return description | {"git": hide_password(git)} if git else description
