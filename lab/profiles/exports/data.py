# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles of an experiment, variants side by side, as plain data for `labctl profile` and the API, and in other tools' formats."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from lab.errors import UnknownRow
from lab.experiments.page import get_experiment
from lab.profiles.case_profiles import CPU, called, kind_named, profiling_costs
from lab.profiles.counters import counter_page
from lab.profiles.difference import WHOLE, SeenFrom, caller_text, difference, variant_tree
from lab.profiles.exports.formats import DIFFERENCE_FORMS, TREE_FORMS
from lab.profiles.exports.stacks import NoSuchForm
from lab.profiles.page import profile_page

# Symbols kept for each case: those of the largest changes.
ROWS = 12


def profile_data(
    experiment_id: int, *, symbols: Sequence[str] = (), kind: str = "", rows: int = ROWS
) -> list[dict[str, Any]]:
    """Return for each profiled case {"profile": …, "counters": …}, as profiles/page.py and counters.py read them; empty where none was profiled.

    symbols: split by caller, what the workload watches if empty. kind: cpu if empty, or the existing kind if there is no cpu profile. Raises UnknownRow.
    """
    kind = kind_named(kind) if kind else ""
    cases = []
    for case in get_experiment(experiment_id).cases.all():
        page = profile_page(experiment_id, case.pk, asked=tuple(symbols), rows=rows, kind=kind)
        if page.columns:
            cases.append(
                {"profile": as_data(page), "counters": as_data(counter_page(experiment_id, case.pk))}
            )
    return cases


def profiled_case(experiment_id: int, number: int, kind: str) -> int:
    """The id of a case by its number, from 1; 0 is the first that has profiles of the kind, of any if empty. Raises UnknownRow."""
    cases = get_experiment(experiment_id).cases.all()
    if number:
        if not 1 <= number <= len(cases):
            raise UnknownRow(f"experiment {experiment_id} has cases 1 to {len(cases)}, not {number}")
        return cases[number - 1].pk
    profiled = profiled_cases(experiment_id, kind)
    if not profiled:
        raise UnknownRow(f"experiment {experiment_id} has no {called(kind or CPU)}")
    return profiled[0]


def profiled_cases(experiment_id: int, kind: str) -> list[int]:
    """The ids of the cases that have profiles of the kind, of any if empty. Raises UnknownRow."""
    return [
        case.pk
        for case in get_experiment(experiment_id).cases.all()
        if any(kind in ("", profiling_cost.kind) for profiling_cost in profiling_costs(case.pk))
    ]


def as_data(value: Any) -> Any:
    """Return a read model as JSON values, with its properties: times as ISO 8601, paths as text."""
    if is_dataclass(value) and not isinstance(value, type):
        names = [*(field.name for field in fields(value)), *_computed(type(value))]
        return {name: as_data(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(key): as_data(item) for key, item in value.items()}
    if isinstance(value, tuple | list | set | frozenset):
        return [as_data(item) for item in value]
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if isinstance(value, Path) else value


def _computed(kind: type) -> Iterable[str]:
    return (name for name, item in vars(kind).items() if isinstance(item, property))


def profile_file(
    experiment_id: int,
    form: str,
    *,
    case: int = 0,
    variant: str = "",
    base: str = "",
    kind: str = "",
    seen: SeenFrom = WHOLE,
) -> bytes:
    """Return a file of all boots of a variant, or with `base` of their difference from the base's.

    case: its number, from 1; 0 is the first that is profiled. kind: as in profile_data. seen: from which symbol. Raises
    UnknownRow, ExportTooLarge.
    """
    kind = kind_named(kind) if kind else ""
    case_id = profiled_case(experiment_id, case, kind)
    forms = DIFFERENCE_FORMS if base else TREE_FORMS
    if form not in forms:
        raise UnknownRow(f'form: there is no format "{form[:40]}" here; there are {", ".join(forms)}')
    body: str | bytes
    if base:
        compared = difference(experiment_id, case_id, base=base, variant=variant, kind=kind, seen=seen)
        body = DIFFERENCE_FORMS[form].write(compared)
    else:
        drawn = variant_tree(experiment_id, case_id, variant=variant, kind=kind, seen=seen)
        try:
            body = TREE_FORMS[form].write(drawn.tree, **drawn.context)
        except NoSuchForm as exc:
            raise UnknownRow(f"form: {exc}") from exc
    return body.encode() if isinstance(body, str) else body


def callers_text(experiment_id: int, *, symbols: Sequence[str] = (), kind: str = "") -> str:
    """Return the callers of the symbols in all profiled cases, as text trees. kind: as in profile_data. Raises UnknownRow."""
    kind = kind_named(kind) if kind else ""
    return "".join(
        caller_text(experiment_id, case, variant="", symbols=tuple(symbols), kind=kind)
        for case in profiled_cases(experiment_id, kind)
    )
