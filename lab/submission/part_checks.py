# SPDX-License-Identifier: GPL-2.0-or-later
"""Report all faults of a description at once, whether it came by a form, TOML, REST or labctl."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from pydantic import BaseModel, ValidationError

from kernels.errors import KernelsError
from lab import models
from lab.errors import LabError, Refusals, SpecError, SubmissionRejected
from lab.experiments.measure import DEFAULT_BOOTS
from lab.experiments.spec import (
    DESIGNS,
    LINE_SWITCHES,
    MOST_PATCHES,
    SWITCH_MODELS,
    ExperimentSpec,
    PatchSpec,
)
from lab.experiments.spec_size import check_values
from lab.experiments.switch_names import switch_name, with_names
from lab.submission.parts import read_parts
from lab.submission.prepare import prepare
from lab.validation_messages import lines_of, place_of
from workloads.catalog import load_catalog

# Stands in for the tree where a description names no valid one.
_NO_TREE = "-"
_FIELDS = ("tree", "git", "base", "target")
_PLACE = re.compile(rf"^({'|'.join(SWITCH_MODELS)})\[(\d+)\]")
_FIELD = re.compile(r"(\w+)(?:\[(\d+)\])?")
Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Reduced:
    """The valid parts of a description. positions: by kind, the place of each switch in the whole description."""

    fields: Fields
    positions: Mapping[str, Sequence[int]]


@contextmanager
def every_fault(
    description: Mapping[str, Any], check: Callable[[Mapping[str, Any]], None] | None = None
) -> Iterator[None]:
    """Add to the first refusal of the block all other faults of the description, and each fault's place.

    check: looks at the parts and raises SubmissionRejected, `check_parts` if None. Raises SubmissionRejected for SpecError, too.
    """
    faults = Refusals()
    try:
        yield
    except SpecError as exc:
        faults.refused += [SubmissionRejected(line, place=place_of(line)) for line in lines_of(exc)]
    except SubmissionRejected as exc:
        faults.refused.append(exc)
    else:
        return
    with faults.collect():
        (check or check_parts)(description)
    if whole := faults.together():
        first, *others = sorted((whole.alone(), *whole.others), key=_order)
        raise SubmissionRejected(str(first), whole.detail, first.place, others)


def _order(refusal: SubmissionRejected) -> tuple[int, int]:
    """Return where in a description a refusal lies: the field, and the number in its list."""
    match = _FIELD.match(refusal.place)
    if match is None or match[1] not in ExperimentSpec.model_fields:
        return -1, 0
    return list(ExperimentSpec.model_fields).index(match[1]), int(match[2] or 0)


def check_parts(description: Mapping[str, Any], home: Path | None = None) -> None:
    """Check the parts that are well-formed: target, tree, base, each switch, and whether patches apply.

    A tree is opened where it is at hand, and neither imported nor fetched. home: the state root, settings.HOME if None.
    Raises SubmissionRejected with all that is refused.
    """
    root, faults = home or settings.HOME, Refusals()
    try:
        check_values(description)
        named = with_names(description)
        reduced = _reduced(named)
        faults.refused += _refusals(reduced, root)
        faults.refused += _refusals(_before_the_first_fault(reduced, named, faults), root, apply=True)
    except (ValidationError, LabError, KernelsError):
        # The description is refused anyway; a lab that cannot check its parts reports that at the next try.
        pass
    faults.check()


def _refusals(reduced: _Reduced, root: Path, *, apply: bool = False) -> list[SubmissionRejected]:
    """Return what is refused, with the places of the whole description. apply: also try the combinations."""
    spec = ExperimentSpec.model_validate(reduced.fields)
    try:
        if apply and spec.patches:
            prepare(spec, root, lambda _: None, only_at_hand=True)
        elif not apply:
            read_parts(spec, root, lambda _: None, only_at_hand=True)
    except SubmissionRejected as exc:
        refused = [
            refusal for refusal in (exc, *exc.others) if refusal.place != "tree" or spec.tree != _NO_TREE
        ]
        return [
            _moved(refusal, reduced)
            for refusal in refused
            if refusal.place.startswith("patches") or not apply
        ]
    return []


def _reduced(named: Mapping[str, Any]) -> _Reduced:
    """Keep the parts that are valid by themselves, with a case that every lab has."""
    fields = {**_least(), **{name: named[name] for name in _FIELDS if _is_valid(name, named.get(name))}}
    if "git" in fields:
        del fields["tree"]
    measure = named.get("measure")
    if isinstance(measure, Mapping) and measure.get("clock") in tuple(DEFAULT_BOOTS):
        fields["measure"] = {"clock": measure["clock"]}
    positions = {}
    for kind, model in SWITCH_MODELS.items():
        fields[kind], positions[kind] = _kept(model, named.get(kind))
    return _Reduced(fields, positions)


def _before_the_first_fault(reduced: _Reduced, named: Mapping[str, Any], faults: Refusals) -> _Reduced:
    """Return the patches before the first fault, with their rules: a later patch may depend on the faulty part."""
    refused = [
        int(match[2])
        for refusal in faults.refused
        if (match := _PLACE.match(refusal.place)) and match[1] == "patches"
    ]
    names: set[str] = set()
    patches: list[Fields] = []
    for place, (patch, position) in enumerate(
        zip(reduced.fields["patches"], reduced.positions["patches"], strict=True)
    ):
        rules = {name: named["patches"][position].get(name) or [] for name in ("requires", "excludes")}
        names.add(patch["name"])
        whole = {**patch, **rules}
        known = _fits(PatchSpec, whole) and {*rules["requires"], *rules["excludes"]} <= names
        if position != place or position in refused or not known:
            break
        patches.append(whole)
    fields = {**reduced.fields, **dict.fromkeys(LINE_SWITCHES, ()), "patches": patches}
    for refusal in faults.refused:
        # A wrong target or clock does not keep patches from being tried: any target of the lab will do.
        fields.pop(
            refusal.place.partition(".")[0] if refusal.place in ("target", "measure.clock") else "", None
        )
    target = models.Target.objects.filter(enabled=True).first()
    if "target" not in fields and target:
        fields["target"] = target.name
    design = named.get("design")
    chosen = {"design": design} if design in DESIGNS else {}
    return _Reduced({**fields, **chosen}, reduced.positions)


def _least() -> Fields:
    return {"name": "parts", "tree": _NO_TREE, "cases": [{"workload": next(iter(load_catalog()))}]}


def _is_valid(name: str, value: object) -> bool:
    fields = {**_least(), name: value}
    if name == "git":
        del fields["tree"]
    return _fits(ExperimentSpec, fields)


def _fits(model: type[BaseModel], fields: Mapping[str, Any]) -> bool:
    try:
        model.model_validate(fields)
    except ValidationError:
        return False
    return True


def _kept(model: type[BaseModel], switches: object) -> tuple[list[Fields], list[int]]:
    """Return the switches that are valid except for their names, without their rules, and their positions."""
    kept: dict[str, Fields] = {}
    positions: list[int] = []
    for position, table in enumerate(switches if isinstance(switches, list) else ()):
        if not isinstance(table, Mapping):
            continue
        switch = {key: value for key, value in table.items() if key not in ("requires", "excludes")}
        own = switch.get("name")
        near = (own, switch_name(own)) if isinstance(own, str) else ()
        for name in (*near, f"number-{position + 1}"):
            if name not in kept and _fits(model, {**switch, "name": name}):
                kept[name] = {**switch, "name": name}
                positions.append(position)
                break
    return list(kept.values())[:MOST_PATCHES], positions[:MOST_PATCHES]


def _moved(refusal: SubmissionRejected, reduced: _Reduced) -> SubmissionRejected:
    """Return a refusal with the place that its switch has in the whole description."""
    match = _PLACE.match(refusal.place)
    if match is None:
        return refusal
    place = f"{match[1]}[{reduced.positions[match[1]][int(match[2])]}]{refusal.place[match.end() :]}"
    return SubmissionRejected(str(refusal), refusal.detail, place)
