# SPDX-License-Identifier: GPL-2.0-or-later
"""Read two experiments side by side: the same case and metric, both bases, each patch in both."""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from lab.experiments.page import get_experiment
from lab.experiments.shown_description import case_titles
from lab.models import Case, Comparison, Experiment, Run
from lab.models.states import Purpose, Role, RunState

# Absolute numbers of two experiments are comparable only under one clock and on one machine model.
Cell = tuple[Comparison | None, Comparison | None]


@dataclass(frozen=True, slots=True)
class PairSide:
    """One of the two experiments. machine: its model and accelerator, "" where no boot finished."""

    row: Experiment
    machine: str


@dataclass(frozen=True, slots=True)
class PairRow:
    """One metric of one case in both. patches: by name, the first experiment's comparison and the second's."""

    metric: str
    unit: str
    primary: bool
    first_base: float | None
    second_base: float | None
    patches: tuple[tuple[str, Cell], ...]

    @property
    def base_ratio(self) -> float | None:
        """Return the second base over the first, None where either is missing or zero."""
        if not self.first_base or self.second_base is None:
            return None
        return self.second_base / self.first_base


@dataclass(frozen=True, slots=True)
class PairPage:
    """Both experiments. obstacles: why they cannot be compared, none where they can; unmatched: cases of one alone."""

    first: PairSide
    second: PairSide
    obstacles: tuple[str, ...]
    cases: tuple[tuple[str, tuple[PairRow, ...]], ...]
    unmatched: tuple[str, ...]


def pair_page(first_id: int, second_id: int) -> PairPage:
    """Return two experiments side by side. Raises UnknownRow."""
    rows = get_experiment(first_id), get_experiment(second_id)
    first, second = (PairSide(row, _machine(row)) for row in rows)
    ours, theirs = ({_identity(case): case for case in row.cases.all()} for row in rows)
    titles = case_titles(list(ours.values())) | case_titles(list(theirs.values()))
    obstacles = _obstacles(first, second)
    both = [key for key in ours if key in theirs]
    if not obstacles and not both:
        obstacles = (
            "They share no case. Two cases are the same if workload, preset and parameters are equal.",
        )
    cases = () if obstacles else tuple((titles[ours[key].pk], _rows(ours[key], theirs[key])) for key in both)
    unmatched = [
        titles[case.pk]
        for side, other in ((ours, theirs), (theirs, ours))
        for key, case in side.items()
        if key not in other
    ]
    return PairPage(first, second, obstacles, cases, tuple(unmatched))


def _machine(row: Experiment) -> str:
    """Return the model that the base's first finished boot recorded: processor, accelerator."""
    boots = Run.objects.filter(
        variant__experiment=row, variant__role=Role.BASE, purpose=Purpose.MEASURED, state=RunState.DONE
    )
    environment = boots.order_by("pk").values_list("environment", flat=True).first() or {}
    parts = {name: environment.get(name) or {} for name in ("guest", "host", "machine")}
    accelerator = parts["machine"].get("accelerator") or parts["host"].get("accelerator")
    model = parts["host"].get("host_cpu") or parts["guest"].get("cpu_model")
    return ", ".join(str(part) for part in (model, accelerator) if part)


def _obstacles(first: PairSide, second: PairSide) -> tuple[str, ...]:
    obstacles = []
    if first.row == second.row:
        obstacles.append("Both are the same experiment: choose another for one side.")
    if first.row.clock != second.row.clock:
        obstacles.append(f"They count different clocks: {first.row.clock} and {second.row.clock}.")
    if first.machine != second.machine:
        names = " and ".join(side.machine or "one that was not recorded" for side in (first, second))
        obstacles.append(f"They ran on different machine models: {names}.")
    return tuple(obstacles)


def _identity(case: Case) -> str:
    return json.dumps([case.workload, case.preset, case.params], sort_keys=True)


def _rows(ours: Case, theirs: Case) -> tuple[PairRow, ...]:
    first, second = (_by_metric(case) for case in (ours, theirs))
    rows = [_row(metric, first[metric], second[metric]) for metric in first if metric in second]
    return tuple(sorted(rows, key=lambda row: not row.primary))


def _by_metric(case: Case) -> dict[str, dict[str, Comparison]]:
    grouped: dict[str, dict[str, Comparison]] = {}
    for comparison in case.comparisons.select_related("variant").order_by("variant__pk", "pk"):
        grouped.setdefault(comparison.metric, {})[comparison.variant.name] = comparison
    return grouped


def _row(metric: str, first: dict[str, Comparison], second: dict[str, Comparison]) -> PairRow:
    comparison = next(iter(first.values()))
    names = dict.fromkeys((*first, *second))
    return PairRow(
        metric=metric,
        unit=comparison.unit,
        primary=comparison.primary,
        first_base=_base(first.values()),
        second_base=_base(second.values()),
        patches=tuple((name, (first.get(name), second.get(name))) for name in names),
    )


def _base(comparisons: Iterable[Comparison]) -> float | None:
    """Return the base's median as the comparison page has it: over both of its boots a block, unless only these are compared."""
    rows = list(comparisons)
    judged = [comparison for comparison in rows if comparison.variant.role != Role.AA] or rows
    return next((row.base_median for row in judged if row.base_median is not None), None)
