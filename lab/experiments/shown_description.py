# SPDX-License-Identifier: GPL-2.0-or-later
"""The description of an experiment as pages and the API show it, and its cases."""

import json
from collections.abc import Mapping, Sequence
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
    """A workload with its parameters. title: of case_titles."""

    id: int
    position: int
    workload: str
    preset: str
    params: dict[str, Any]
    title: str


def case_views(experiment: Experiment) -> tuple[CaseView, ...]:
    """Return the experiment's cases in their order."""
    cases = list(experiment.cases.all())
    titles = case_titles(cases)
    return tuple(
        CaseView(case.pk, case.position, case.workload, case.preset, case.params, titles[case.pk])
        for case in cases
    )


def case_title(case: Case) -> str:
    """Return the title of one case."""
    return case_titles(list(case.experiment.cases.all()))[case.pk]


def case_titles(cases: Sequence[Case]) -> dict[int, str]:
    """Return the title of each case of an experiment by its key, each a different one.

    "showgids (smoke)", or "showgids (smoke, threads=2)" with the parameters in which cases of one workload and preset differ.
    """
    titles = {}
    for case in cases:
        alike = [other for other in cases if str(other) == str(case)]
        own = _told_apart(case, alike) if len(alike) > 1 else ""
        titles[case.pk] = f"{str(case).removesuffix(')')}, {own})" if own else str(case)
    return titles


def _told_apart(case: Case, alike: Sequence[Case]) -> str:
    """Return the parameters in which a case differs from others of its title, and its place if another has the same."""
    names = sorted({name for other in alike for name in other.params})
    differ = [
        name for name in names if any(other.params.get(name) != case.params.get(name) for other in alike)
    ]
    words = [f"{name}={json.dumps(case.params[name])}" for name in differ if name in case.params]
    same = [other for other in alike if other.params == case.params]
    return ", ".join([*words, f"case {case.position + 1}"] if len(same) > 1 or not words else words)


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
