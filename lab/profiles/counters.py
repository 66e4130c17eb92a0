# SPDX-License-Identifier: GPL-2.0-or-later
"""Counters of profiled boots, all variants side by side: perf stat, /proc/vmstat, /proc/slabinfo.

`Run.counters` holds, by source, the counts over all timed iterations of a boot; here counts are per timed iteration.
It lacks those of the kernel's own counts that did not change: they are 0, unless the boot lists them as unavailable.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, log
from typing import Any

import numpy as np

from lab.errors import UnknownRow
from lab.experiments.page import get_experiment
from lab.experiments.shown_description import CaseView, case_views
from lab.models import Run
from lab.models.states import Purpose, Role
from lab.profiles.analysis.counter_shifts import CounterShifts, counter_shifts
from lab.profiles.analysis.share_shifts import CERTAIN
from lab.profiles.case_profiles import ProfilingCost, profiling_costs
from lab.statistics.block_model import BlockLayout
from lab.statistics.quantiles import middle

# The source that reports zeros, too.
PERF_STAT = "perf stat"
# In a run's extras: the number of timed iterations that its counters cover; 1 for a program that times itself.
COUNTED_ITERATIONS = "counted_iterations"
SHARED_LINES = "shared_lines"
"""In a profiled run's extras: the report of `perf c2c`, where the machine's PMU samples memory accesses."""
# A counter by its source and its own name.
Name = tuple[str, str]


@dataclass(frozen=True, slots=True)
class CounterCell:
    """One variant's counter, per timed iteration: the median of its boots and their interval (their range below 6 boots).

    ratio, ratio_low, ratio_high: over the base's; None where a boot's is 0 or below. q: how certain it is that they differ,
    None where it was not tested. All None where no boot has the counter.
    """

    median: float | None = None
    low: float | None = None
    high: float | None = None
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    q: float | None = None

    @property
    def certain(self) -> bool:
        """Return whether it differs from the base's for more than chance."""
        return self.q is not None and self.q <= CERTAIN


@dataclass(frozen=True, slots=True)
class CounterRow:
    """One counter over all columns, in their order."""

    source: str
    name: str
    cells: tuple[CounterCell, ...]


@dataclass(frozen=True, slots=True)
class CounterColumn:
    """One variant: its boots that count; iterations: the mean number of timed ones a boot."""

    variant_id: int
    variant: str
    role: str
    boots: int
    iterations: float


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Data that could not be collected, the reason, and the number of boots."""

    what: str
    why: str
    boots: int
    of: int


@dataclass(frozen=True, slots=True)
class CounterPage:
    """Counters of one case. quiet: how many more were 0 in every boot. doubt: why nothing is certain, or nothing."""

    experiment_id: int
    name: str
    case: CaseView
    cases: tuple[CaseView, ...]
    columns: tuple[CounterColumn, ...]
    rows: tuple[CounterRow, ...]
    quiet: int
    unavailable: tuple[Unavailable, ...]
    costs: tuple[ProfilingCost, ...]
    doubt: str


@dataclass(frozen=True, slots=True)
class _Boot:
    run: Run
    iterations: int
    counts: Mapping[Name, float]

    def count(self, name: Name) -> float:
        """Return the count per timed iteration; NaN if not available."""
        unavailable = {str(gap.get("what", "")) for gap in self.run.unavailable}
        silent = float("nan") if name[0] == PERF_STAT or name[0] in unavailable else 0.0
        return self.counts.get(name, silent)


def counter_page(experiment_id: int, case_id: int) -> CounterPage:
    """Return the counters of one case, those that certainly changed most first. Raises UnknownRow."""
    experiment = get_experiment(experiment_id)
    cases = case_views(experiment)
    case = next((case for case in cases if case.id == case_id), None)
    if case is None:
        raise UnknownRow(f"there is no case {case_id} of experiment {experiment_id}")
    runs = list(
        Run.objects.filter(case=case_id, purpose=Purpose.PROFILED, state="done")
        .select_related("variant")
        .order_by("variant__position", "block", "position")
    )
    boots = _boots(runs)
    columns = tuple(_columns(boots))
    names = sorted({name for boot in boots for name in boot.counts})
    busy = [name for name in names if any(boot.counts.get(name) for boot in boots)]
    rows = _rows(boots, columns, busy)
    return CounterPage(
        experiment_id=experiment_id,
        name=experiment.name,
        case=case,
        cases=cases,
        columns=columns,
        rows=tuple(sorted(rows, key=_weight)),
        quiet=len(names) - len(busy),
        unavailable=_unavailable(runs),
        costs=profiling_costs(case_id),
        doubt=_doubt(columns, rows),
    )


def _boots(runs: Sequence[Run]) -> list[_Boot]:
    """Return boots that counted something; those outside their validity gates only if their variant has no others."""
    by_variant: dict[int, list[_Boot]] = defaultdict(list)
    for run in runs:
        number = int(run.extras.get(COUNTED_ITERATIONS) or 1)
        if counts := {name: value / number for name, value in _counts(run.counters)}:
            by_variant[run.variant_id].append(_Boot(run, number, counts))
    return [
        boot
        for own in by_variant.values()
        for boot in ([counted_boot for counted_boot in own if not counted_boot.run.invalid] or own)
    ]


def _counts(counters: Mapping[str, Any]) -> Iterator[tuple[Name, float]]:
    """Yield all numbers of a run by source and name; nested numbers are named by their path."""
    for source, counts in counters.items():
        yield from _numbers(str(source), "", counts)


def _numbers(source: str, path: str, reading: Any) -> Iterator[tuple[Name, float]]:
    if isinstance(reading, Mapping):
        for name, value in reading.items():
            yield from _numbers(source, f"{path} {name}".strip(), value)
    elif isinstance(reading, int | float) and not isinstance(reading, bool) and isfinite(reading):
        yield (source, path), float(reading)


def _columns(boots: Sequence[_Boot]) -> Iterator[CounterColumn]:
    by_variant: dict[int, list[_Boot]] = defaultdict(list)
    for boot in boots:
        by_variant[boot.run.variant_id].append(boot)
    for own in by_variant.values():
        variant = own[0].run.variant
        mean = sum(boot.iterations for boot in own) / len(own)
        yield CounterColumn(variant.pk, variant.name, variant.role, len(own), mean)


def _rows(
    boots: Sequence[_Boot], columns: Sequence[CounterColumn], names: Sequence[Name]
) -> list[CounterRow]:
    if not names:
        return []
    values = np.array([[boot.count(name) for boot in boots] for name in names])
    places = {column.variant_id: place for place, column in enumerate(columns)}
    owners = np.array([places[boot.run.variant_id] for boot in boots], np.intp)
    blocks = np.array([boot.run.block for boot in boots], np.intp)
    by_column = []
    for place, shifts in enumerate(_shifts(values, owners, blocks, columns)):
        by_column.append([_cell(row[owners == place], shifts, at) for at, row in enumerate(values)])
    return [
        CounterRow(source, name, cells)
        for (source, name), cells in zip(names, zip(*by_column, strict=True), strict=True)
    ]


def _shifts(
    values: np.ndarray[Any, np.dtype[np.float64]],
    owners: np.ndarray[Any, np.dtype[np.intp]],
    blocks: np.ndarray[Any, np.dtype[np.intp]],
    columns: Sequence[CounterColumn],
) -> Iterator[CounterShifts | None]:
    """Yield each column's shifts against the base, which includes its twin's boots; None for the base."""
    base, twin = (
        next((place for place, column in enumerate(columns) if column.role == role), None)
        for role in (Role.BASE, Role.AA)
    )
    for place in range(len(columns)):
        if base is None or place == base:
            yield None
            continue
        arm = owners + 2
        arm[owners == base] = 0
        if twin is not None and place != twin:
            arm[owners == twin] = 0
        arm[owners == place] = 1
        yield counter_shifts(values, BlockLayout(blocks, arm))


def _cell(own: np.ndarray[Any, np.dtype[np.float64]], shifts: CounterShifts | None, at: int) -> CounterCell:
    known = own[np.isfinite(own)]
    if not known.size:
        return CounterCell()
    boots = middle(known.tolist())
    if shifts is None:
        return CounterCell(boots.value, boots.low, boots.high)
    moved = (float(part[at]) for part in (shifts.ratio, shifts.low, shifts.high, shifts.q))
    return CounterCell(
        boots.value, boots.low, boots.high, *(figure if isfinite(figure) else None for figure in moved)
    )


def change_of(cell: CounterCell) -> float:
    """Return how far a counter is from the base's, as a logarithm; one without a ratio is farthest."""
    return round(abs(log(cell.ratio)), 6) if cell.ratio else float("inf")


def _weight(row: CounterRow) -> tuple[float, bool, str, str]:
    """Return the sort key: the largest certain change, or a missing ratio, first; then perf stat's few before the kernel's many."""
    moved = [change_of(cell) for cell in row.cells if cell.certain]
    return -max(moved, default=0.0), row.source != PERF_STAT, row.source, row.name


def _unavailable(runs: Sequence[Run]) -> tuple[Unavailable, ...]:
    """Return missing data by reason, the most frequent first."""
    counts: dict[tuple[str, str], int] = defaultdict(int)
    for run in runs:
        for gap in run.unavailable:
            counts[str(gap.get("what", "")), str(gap.get("why", ""))] += 1
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Unavailable(what, why, boots, len(runs)) for (what, why), boots in ordered)


def _doubt(columns: Sequence[CounterColumn], rows: Sequence[CounterRow]) -> str:
    others = [column for column in columns if column.role != Role.BASE]
    if not rows or any(cell.q is not None for row in rows for cell in row.cells):
        return ""
    if len(others) == len(columns):
        return "The base was not profiled: there is nothing to compare with."
    if not others:
        return ""
    return (
        "With so few profiled boots nothing tells whether kernels differ or boots do; "
        "ask for more with profile_boots."
    )
