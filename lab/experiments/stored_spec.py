# SPDX-License-Identifier: GPL-2.0-or-later
"""The stored description of an experiment: as its fields, as the file that labctl reads, without its defaults."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

import tomli_w
from pydantic import BaseModel

from lab.errors import NotAllowed
from lab.experiments.page import get_experiment
from lab.experiments.spec import ExperimentSpec, spec_from_mapping
from lab.models import Experiment, User
from lab.people.permissions import may_change


def _parts(part: type[BaseModel]) -> Iterator[tuple[str, type[BaseModel]]]:
    """Yield the fields below a part of a description that hold further parts, with what those are."""
    for name, field in part.model_fields.items():
        for inner in (field.annotation, *get_args(field.annotation)):
            if isinstance(inner, type) and not get_args(inner) and issubclass(inner, BaseModel):
                yield name, inner
                yield from _parts(inner)


_PARTS: Mapping[str, type[BaseModel]] = dict(_parts(ExperimentSpec))


def stored_spec(experiment: Experiment) -> ExperimentSpec:
    """The description an experiment was made from. Raises SpecError where today's lab no longer accepts it."""
    return spec_from_mapping(experiment.spec)


def stored_description(experiment_id: int) -> dict[str, Any]:
    """Return the description of an experiment as without_defaults leaves it. Raises UnknownRow."""
    return without_defaults(get_experiment(experiment_id).spec)


def description_as_toml(description: Mapping[str, Any]) -> str:
    """A description as the file that labctl reads."""
    plain = in_order(without_defaults(description))
    # A text over several lines would lose the CR of each CRLF, and with it the patch of a file that has them.
    return tomli_w.dumps(plain, multiline_strings=not any("\r\n" in text for text in _texts(plain)))


def _texts(value: Any) -> Iterator[str]:
    """Yield all texts of a description."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for member in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(member)


def in_order(description: Mapping[str, Any], part: type[BaseModel] | None = ExperimentSpec) -> dict[str, Any]:
    """Return a description with its fields in their usual order: PostgreSQL sorts the keys of a JSON value by length.

    Unknown keys come last, by name.
    """
    places = {name: place for place, name in enumerate(part.model_fields)} if part else {}
    ordered = {}
    for key in sorted(description, key=lambda key: (places.get(key, len(places)), key)):
        value, inner = description[key], _PARTS.get(key)
        if isinstance(value, Mapping):
            value = in_order(value, inner)
        elif isinstance(value, list):
            value = [in_order(member, inner) if isinstance(member, Mapping) else member for member in value]
        ordered[key] = value
    return ordered


def without_defaults(description: Mapping[str, Any]) -> dict[str, Any]:
    """A stored description without empty parts, and without what intake noted beside a patch's text."""
    kept = {}
    for key, value in description.items():
        if key == "origin" or value is None or value in ("", [], {}):
            continue
        if isinstance(value, Mapping):
            value = without_defaults(value)
        elif isinstance(value, list):
            value = [without_defaults(member) if isinstance(member, Mapping) else member for member in value]
        kept[key] = value
    return kept


def own_experiment(experiment_id: int, by: User, scopes: Sequence[str] | None, verb: str) -> Experiment:
    """Return an experiment's row for its submitter and operators. verb: what they may do. Raises UnknownRow, NotAllowed."""
    row = get_experiment(experiment_id)
    if may_change(by, row.submitter, scopes=scopes):
        return row
    if scopes is not None and may_change(by, row.submitter):
        raise NotAllowed(
            f"this token may not {verb} experiment {experiment_id}: its scopes are {', '.join(scopes)}"
        )
    whose = f"{row.submitter}'s: only its submitter and" if row.submitter else "nobody's: only"
    raise NotAllowed(f"experiment {experiment_id} is {whose} operators may {verb} it")
