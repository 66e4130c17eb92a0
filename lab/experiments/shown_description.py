# SPDX-License-Identifier: GPL-2.0-or-later
"""The description of an experiment as pages and the API show it, and its cases."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from kernels.trees.git import hide_password
from lab.experiments.measure import MeasureSpec
from lab.experiments.spec import ExperimentSpec
from lab.experiments.stored_spec import stored_description
from lab.models import Case, Experiment


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


def shown_description(experiment_id: int) -> dict[str, Any]:
    """Return the description as it can be submitted again; a password in its git URL is left out. Raises UnknownRow."""
    return without_password(stored_description(experiment_id))


def whole_description(experiment: Experiment) -> dict[str, Any]:
    """Return every field of the description, defaults included, but no patch's text, which may be long.

    A description that an older lab stored and this one cannot read is returned as it is stored.
    """
    stored: dict[str, Any] = experiment.spec
    try:
        whole = ExperimentSpec.model_validate(stored).model_dump(mode="json", exclude={"priority"})
    except ValidationError:
        whole = stored
    patches = [{k: v for k, v in patch.items() if k != "text"} for patch in whole.get("patches") or ()]
    return without_password(whole | ({"patches": patches} if "patches" in whole else {}))


def measure_of(stored: Mapping[str, Any]) -> MeasureSpec:
    """Return the measure table of a stored description; the defaults where today's lab cannot read it."""
    try:
        return MeasureSpec.model_validate(stored.get("measure", {}))
    except ValidationError:
        return MeasureSpec()


def without_password(description: dict[str, Any]) -> dict[str, Any]:
    """Return a description whose git URL carries none."""
    git = description.get("git")
    return description | {"git": hide_password(git)} if git else description
