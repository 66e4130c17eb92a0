# SPDX-License-Identifier: GPL-2.0-or-later
"""Read profiles for the page: symbols of all variants side by side, their callers and callees.

Every share is of the samples of busy CPUs, over all counted boots of a variant. Of waits it is nanoseconds waited a boot
that are compared; their share of all waiting is shown beside them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lab.experiments.shown_description import CaseView, case_view
from lab.models.states import Role
from lab.profiles.analysis.frame_alignment import Flags, Integers, UnitedTree
from lab.profiles.analysis.frame_shifts import doubt
from lab.profiles.analysis.share_shifts import CERTAIN
from lab.profiles.analysis.share_table import VariantShares, amount_table, share_table
from lab.profiles.analysis.symbol_counts import Counts, callee_counts, caller_counts, symbol_counts
from lab.profiles.analysis.weight_unit import Unit, is_waited, unit_of
from lab.profiles.case_profiles import (
    CPU,
    EXACT,
    CaseProfiles,
    ProfiledBoot,
    ProfilingCost,
    case_profiles,
    profiling_costs,
    watched,
)
from lab.profiles.exact import ExactChange, exact_changes


@dataclass(frozen=True, slots=True)
class ShareCell:
    """One variant's share of a row; fractions. low, high: 95 % interval, None where boots are too few for one.

    log_ratio: binary logarithm of the share over the base's; q: how certain that is, None where it was not tested.
    Both None for the base. waited: nanoseconds a boot, of waits, instructions of an exact profile, or cycles per operation of
    modelled waiting, as unit says; low, high, log_ratio and q are then of it.
    """

    share: float
    low: float | None = None
    high: float | None = None
    log_ratio: float | None = None
    q: float | None = None
    waited: float | None = None
    unit: Unit = "samples"

    @property
    def size(self) -> float:
        """Return the compared value: time waited, or the share."""
        return self.share if self.waited is None else self.waited

    @property
    def certain(self) -> bool:
        """Return whether the share differs from the base's for more than chance."""
        return self.q is not None and self.q <= CERTAIN


@dataclass(frozen=True, slots=True)
class ProfileColumn:
    """One variant. run_id: its first boot. samples, waits, lost: of all counted boots. idle: the fraction left out.

    doubt: why no share of it can differ significantly from the base's, or nothing; so for the base.
    """

    variant_id: int
    variant: str
    role: str
    boots: tuple[ProfiledBoot, ...]
    left_out: tuple[ProfiledBoot, ...]
    idle: float
    doubt: str

    @property
    def base(self) -> bool:
        """Return whether the others are compared with it."""
        return self.role == Role.BASE

    @property
    def run_id(self) -> int:
        """The first boot."""
        return self.boots[0].run_id

    @property
    def samples(self) -> int:
        """All of them, idle ones too."""
        return sum(boot.samples for boot in self.boots)

    @property
    def waits(self) -> int:
        """Return how often anything waited, where samples are nanoseconds."""
        return sum(boot.waits for boot in self.boots)

    @property
    def lost(self) -> int:
        """Samples that the kernels dropped."""
        return sum(boot.lost for boot in self.boots)


@dataclass(frozen=True, slots=True)
class SymbolRow:
    """One symbol over all columns, in their order: in itself (own), and in it or in what it calls (total).

    raw: the compiler's names of it, where they differ. line: where its code begins ("fs/namei.c:2251"), if that is known.
    """

    symbol: str
    raw: tuple[str, ...]
    own: tuple[ShareCell, ...]
    total: tuple[ShareCell, ...]
    line: str = ""


@dataclass(frozen=True, slots=True)
class CallerRow:
    """One caller, or callee, over all columns."""

    caller: str
    cells: tuple[ShareCell, ...]


@dataclass(frozen=True, slots=True)
class CallerSplit:
    """The share of some symbols, all in all and by who called them; the rows add up to the total."""

    symbols: tuple[str, ...]
    total: tuple[ShareCell, ...]
    rows: tuple[CallerRow, ...]


@dataclass(frozen=True, slots=True)
class ProfilePage:
    """Profiles of one case, all variants side by side.

    asked: the symbols split by caller. splits: of all of them together, then of each; empty where no sample holds one.
    costs: of each kind of profiles that the case has. changes: of an exact profile, what each candidate changed.
    """

    experiment_id: int
    name: str
    kind: str
    costs: tuple[ProfilingCost, ...]
    case: CaseView
    cases: tuple[CaseView, ...]
    asked: tuple[str, ...]
    columns: tuple[ProfileColumn, ...]
    symbols: tuple[SymbolRow, ...]
    splits: tuple[CallerSplit, ...]
    changes: tuple[ExactChange, ...] = ()

    @property
    def unit(self) -> Unit:
        """The unit of what is compared, if not shares of samples."""
        return unit_of(self.kind)

    @property
    def waits(self) -> bool:
        """Tell whether it is about waiting."""
        return is_waited(self.unit)

    @property
    def sampled(self) -> bool:
        """Tell whether it is about samples of running CPUs."""
        return self.kind == CPU


@dataclass(frozen=True, slots=True)
class Neighbours:
    """One symbol's callers and callees; `(itself)` among the callees is what it spends in itself. line: as SymbolRow has it."""

    symbol: str
    raw: tuple[str, ...]
    variants: tuple[str, ...]
    total: tuple[ShareCell, ...]
    callers: tuple[CallerRow, ...]
    callees: tuple[CallerRow, ...]
    line: str = ""


def profile_page(
    experiment_id: int, case_id: int, *, asked: tuple[str, ...] = (), rows: int = 60, kind: str = ""
) -> ProfilePage:
    """Return one kind of profiles of one case, at most `rows` symbols of them. Raises UnknownRow.

    asked: symbols whose share is split by caller; those the workload says to watch if none. kind: cpu if empty.
    """
    profiles = case_profiles(experiment_id, case_id, kind=kind)
    asked = asked or watched(profiles)
    return ProfilePage(
        experiment_id=experiment_id,
        name=profiles.experiment.name,
        kind=profiles.kind,
        costs=profiling_costs(case_id),
        case=case_view(profiles.case),
        cases=tuple(case_view(other) for other in profiles.experiment.cases.all()),
        asked=asked,
        columns=tuple(_columns(profiles)),
        symbols=_symbol_rows(profiles, rows),
        splits=_splits(profiles, asked),
        changes=exact_changes(case_id) if profiles.kind == EXACT else (),
    )


def neighbours(
    experiment_id: int, case_id: int, symbol: str, *, rows: int = 20, kind: str = ""
) -> Neighbours:
    """Return who calls a symbol and what it calls, per variant; at most `rows` of either. Raises UnknownRow.

    All rows are empty where no sample holds the symbol. kind: cpu if empty.
    """
    profiles = case_profiles(experiment_id, case_id, kind=kind)
    variants = tuple(one.name for one in profiles.variants)
    tree = profiles.tree
    if not variants or symbol not in tree.names:
        return Neighbours(symbol, (), variants, (), (), ())
    callers, callees = caller_counts(tree, [symbol]), callee_counts(tree, symbol)
    families = [callers.total, callers.by_caller.samples, callees.samples]
    total, above, below, _ = _tables(profiles, families)
    return Neighbours(
        symbol=symbol,
        raw=tree.raw.get(tree.names.index(symbol), ()),
        variants=variants,
        total=next(iter(total), ()),
        callers=_rows(callers.by_caller, above)[:rows],
        callees=_rows(callees, below)[:rows],
        line=profiles.lines.get(symbol, ""),
    )


def _columns(profiles: CaseProfiles) -> Iterator[ProfileColumn]:
    base, tree = profiles.base, profiles.tree
    for place, variant in enumerate(profiles.variants):
        own = profiles.of(place)
        reason = ""
        if base is not None and place != base:
            reason = doubt(tree, profiles.sides(base=base, candidate=place), unit=profiles.unit)
        yield ProfileColumn(
            variant_id=variant.id,
            variant=variant.name,
            role=variant.role,
            boots=variant.boots,
            left_out=variant.left_out,
            idle=_idle(profiles, own),
            doubt=reason,
        )


def _idle(profiles: CaseProfiles, own: Flags) -> float:
    """The fraction of some profiles' samples that is left out."""
    left = int(profiles.tree.resting[:, own].sum())
    return left / max(left + int(profiles.tree.samples[own].sum()), 1)


def _tables(profiles: CaseProfiles, families: Sequence[Integers]) -> list[list[tuple[ShareCell, ...]]]:
    """For each family its rows' cells. How boots vary is learnt from all symbols, whatever the family asks for."""
    rows = [*families, _symbol_family(profiles.tree)]
    whole, owners, base, twin = profiles.tree.samples, profiles.owners, profiles.base, profiles.twin
    if profiles.unit == "samples":
        table = share_table(rows, whole, owners, base=base, twin=twin)
    else:
        table = amount_table(rows, whole, owners, base=base, twin=twin, unit=profiles.unit)
    # All of a variant's waiting, or instructions, a boot.
    exact = profiles.kind == EXACT
    counted = [profiles.of(place) for place in range(len(profiles.variants))]
    wholes = [float(profiles.tree.samples[profiles.drawn(own) if exact else own].mean()) for own in counted]
    return [_cells(family, wholes, profiles.unit) for family in table]


def _symbol_family(tree: UnitedTree) -> Integers:
    """int64[2 names, profiles]: own samples, then total ones. They are read as one line a symbol: one family."""
    counts = symbol_counts(tree)
    return np.concatenate((counts.own, counts.total))


def _cells(
    family: Sequence[VariantShares], wholes: Sequence[float], unit: Unit
) -> list[tuple[ShareCell, ...]]:
    """Cells by row. wholes: what shares are of, by variant, where levels are amounts."""
    columns = []
    for place, one in enumerate(family):
        level, moved = one.interval.share, one.shifts
        nothing = [None] * len(level)
        shares = level if unit == "samples" else level / (wholes[place] or 1.0)
        parts = (
            shares.tolist(),
            one.interval.low.tolist(),
            one.interval.high.tolist(),
            moved.log_ratio.tolist() if moved else nothing,
            moved.q.tolist() if moved else nothing,
            nothing if unit == "samples" else level.tolist(),
        )
        columns.append(
            [
                ShareCell(own, _known(low), _known(high), _known(ratio), _known(q), _known(amount), unit)
                for own, low, high, ratio, q, amount in zip(*parts, strict=True)
            ]
        )
    return list(zip(*columns, strict=True))


def _known(value: float | None) -> float | None:
    """NaN is what an array says for nothing."""
    return None if value is None or value != value else value


def _symbol_rows(profiles: CaseProfiles, rows: int) -> tuple[SymbolRow, ...]:
    """Symbols by their largest certain change; those without one behind, by their largest own share anywhere."""
    tree = profiles.tree
    if not profiles.variants:
        return ()
    (cells,) = _tables(profiles, [])
    found = [
        SymbolRow(
            name,
            tree.raw.get(place, ()),
            cells[place],
            cells[place + len(tree.names)],
            profiles.lines.get(name, ""),
        )
        for place, name in enumerate(tree.names)
        if any(cell.share for cell in cells[place + len(tree.names)])
    ]
    base = profiles.base

    def weight(row: SymbolRow) -> tuple[float, float, str]:
        moved = [
            abs(cell.size - part[base].size)
            for part in (row.own, row.total)
            for cell in part
            if base is not None and cell.certain
        ]
        return -max(moved, default=0.0), -max(cell.size for cell in row.own), row.symbol

    return tuple(sorted(found, key=weight)[:rows])


def _splits(profiles: CaseProfiles, asked: tuple[str, ...]) -> tuple[CallerSplit, ...]:
    counts = caller_counts(profiles.tree, asked)
    if not counts.total.any():
        return ()
    parts: list[tuple[tuple[str, ...], Counts]] = [(asked, counts.by_caller)]
    if len(asked) > 1:
        parts += [((symbol,), own) for symbol, own in counts.by_symbol]
    # A total and its callers are read together: one family for each table.
    families = [np.concatenate((own.samples.sum(axis=0, keepdims=True), own.samples)) for _, own in parts]
    *tables, _ = _tables(profiles, families)
    return tuple(
        CallerSplit(symbols, cells[0], _rows(own, cells[1:]))
        for (symbols, own), cells in zip(parts, tables, strict=True)
    )


def _rows(counts: Counts, cells: Sequence[tuple[ShareCell, ...]]) -> tuple[CallerRow, ...]:
    return tuple(CallerRow(name, own) for name, own in zip(counts.names, cells, strict=True))
