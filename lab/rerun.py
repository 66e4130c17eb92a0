# SPDX-License-Identifier: GPL-2.0-or-later
"""What people do to an experiment that is there: cancel it, run it again, take its description for another one."""

from collections.abc import Mapping
from typing import Any

import tomli_w
from pydantic import BaseModel

from lab.access import may_change
from lab.errors import NotAllowed, Outdated, UnknownRow
from lab.models import Experiment, Fetch, User
from lab.settle import cancel_experiment
from lab.spec import (
    CaseSpec,
    ConfigSpec,
    ExperimentSpec,
    MeasureSpec,
    PatchSpec,
    ReproducedFragment,
    ReproducedKernel,
    Reproduces,
    spec_from_mapping,
)
from lab.states import ExperimentState
from lab.submission.arrival import Wanted
from lab.submission.fetches import FetchAsked, request_fetch
from lab.submission.here import submit_here
from lab.submission.once import Submitted
from lab.submit import find_unfinished, submit_experiment

_PARTS: Mapping[str, type[BaseModel]] = {
    "patches": PatchSpec,
    "configs": ConfigSpec,
    "cases": CaseSpec,
    "measure": MeasureSpec,
    "reproduces": Reproduces,
    "kernels": ReproducedKernel,
    "fragments": ReproducedFragment,
}
OPEN = (ExperimentState.QUEUED, ExperimentState.RUNNING)


def cancel_for(*, experiment_id: int, by: User, scopes: tuple[str, ...] | None = None) -> None:
    """Cancel what is still open of an experiment, for its submitter or an operator.

    scopes: of the token it is asked with. Raises UnknownRow, NotAllowed, Outdated where it is over.
    """
    row = _get(experiment_id)
    if not may_change(by, row.submitter, scopes=scopes):
        if scopes is not None and may_change(by, row.submitter):
            raise NotAllowed(
                f"this token may not cancel experiment {experiment_id}: its scopes are {', '.join(scopes)}"
            )
        whose = f"{row.submitter}'s" if row.submitter else "nobody's"
        raise NotAllowed(f"experiment {experiment_id} is {whose}: its submitter and operators may cancel it")
    if not cancel_experiment(experiment_id):
        row.refresh_from_db()
        raise Outdated(f"experiment {experiment_id} is {row.state} already: there was nothing to cancel")


def rerun_experiment(*, experiment_id: int, by: User | None) -> Submitted:
    """Queue the same description again, as a new experiment; kernels that are built are not built again.

    by: None at this machine's own terminal, where a tree is fetched in this process if need be. Raises UnknownRow,
    Outdated while it is not over, NeedsWorker where `hand_over_rerun` is the way, and what submit_experiment raises.
    """
    row = _over(experiment_id)
    spec = stored_spec(row)
    if by is not None:
        return submit_here(spec=spec, by=by, origin=row)
    unfinished = find_unfinished(spec)
    if unfinished is not None:
        return Submitted(unfinished, True)
    return Submitted(submit_experiment(spec=spec, origin=row), False)


def hand_over_rerun(*, experiment_id: int, by: User) -> Fetch:
    """Have a worker queue the same description again. Raises UnknownRow, Outdated, TooManyFetches."""
    row = _over(experiment_id)
    wanted = Wanted(stored_spec(row).model_dump(mode="json"))
    return request_fetch(by=by, asked=FetchAsked(Fetch.Kind.SUBMIT, wanted, origin=row))


def _over(experiment_id: int) -> Experiment:
    row = _get(experiment_id)
    if row.state in OPEN:
        raise Outdated(f"experiment {experiment_id} is {row.state}: wait for its end, or cancel it first")
    return row


def stored_spec(experiment: Experiment) -> ExperimentSpec:
    """The description an experiment was made from. Raises SpecError where today's lab does not take it any more."""
    return spec_from_mapping(experiment.spec)


def stored_description(experiment_id: int) -> dict[str, Any]:
    """The description of an experiment without what is as it would be anyway. Raises UnknownRow."""
    return without_defaults(spec_of(experiment_id))


def spec_of(experiment_id: int) -> dict[str, Any]:
    """The description of an experiment as it is stored. Raises UnknownRow."""
    found: dict[str, Any] = _get(experiment_id).spec
    return found


def description_as_toml(description: Mapping[str, Any]) -> str:
    """A description as the file that labctl reads."""
    return tomli_w.dumps(in_order(without_defaults(description)), multiline_strings=True)


def in_order(given: Mapping[str, Any], part: type[BaseModel] | None = ExperimentSpec) -> dict[str, Any]:
    """A description with its fields as people read them: PostgreSQL keeps those of a JSON value by their length.

    What is no field comes last, by name.
    """
    places = {name: place for place, name in enumerate(part.model_fields)} if part else {}
    found = {}
    for key in sorted(given, key=lambda key: (places.get(key, len(places)), key)):
        value, inner = given[key], _PARTS.get(key)
        if isinstance(value, Mapping):
            value = in_order(value, inner)
        elif isinstance(value, list):
            value = [in_order(one, inner) if isinstance(one, Mapping) else one for one in value]
        found[key] = value
    return found


def without_defaults(given: Mapping[str, Any]) -> dict[str, Any]:
    """A stored description without empty parts, and without what intake noted beside a patch's text."""
    kept = {}
    for key, value in given.items():
        if key == "origin" or value is None or value in ("", [], {}):
            continue
        if isinstance(value, Mapping):
            value = without_defaults(value)
        elif isinstance(value, list):
            value = [without_defaults(one) if isinstance(one, Mapping) else one for one in value]
        kept[key] = value
    return kept


def _get(experiment_id: int) -> Experiment:
    row = Experiment.objects.select_related("submitter").filter(pk=experiment_id).first()
    if row is None:
        raise UnknownRow(f"there is no experiment {experiment_id}")
    return row
