# SPDX-License-Identifier: GPL-2.0-or-later
"""Read profiles for the page: symbols of all variants side by side, their callers and callees.

Every share is of the samples of busy CPUs, over all counted boots of a variant. Of waits it is nanoseconds waited a boot
that are compared; their share of all waiting is shown beside them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.experiments.shown_description import case_view
from lab.models import Variant
from lab.models.states import Role
from lab.profiles.analysis.frame_alignment import Flags, Integers, UnitedTree
from lab.profiles.analysis.frame_shifts import doubt
from lab.profiles.analysis.share_shifts import CERTAIN, Floats
from lab.profiles.analysis.share_table import VariantShares, share_table
from lab.profiles.analysis.symbol_counts import Counts, callee_counts, caller_counts, symbol_counts
from lab.profiles.case_profiles import (
    EXACT,
    CaseProfiles,
    case_profiles,
    profiling_costs,
    watched,
)
from lab.profiles.claims import Measured, VariantClaims, claims_of
from lab.profiles.exact import exact_changes
from lab.profiles.shape import (
    CallerRow,
    CallerSplit,
    Neighbours,
    ProfileColumn,
    ProfilePage,
    ShareCell,
    SymbolRow,
)


def profile_page(
    experiment_id: int,
    case_id: int,
    *,
    asked: tuple[str, ...] = (),
    rows: int = 60,
    kind: str = "",
    split: bool = True,
) -> ProfilePage:
    """Return one kind of profiles of one case, at most `rows` symbols of them. Raises UnknownRow.

    asked: symbols whose share is split by caller, unless split is False; those the workload says to watch if none. kind: cpu if empty.
    """
    profiles = case_profiles(experiment_id, case_id, kind=kind)
    asked = asked or watched(profiles)
    symbols = _Symbols(profiles, _shares(profiles, [])[0]) if profiles.variants else None
    changes = exact_changes(case_id) if profiles.kind == EXACT else ()
    claims: tuple[VariantClaims, ...] = ()
    if changes:
        claims = tuple(change.claims for change in changes if change.claims)
    elif symbols:
        claims = _claims(symbols)
    return ProfilePage(
        experiment_id=experiment_id,
        name=profiles.experiment.name,
        kind=profiles.kind,
        costs=profiling_costs(case_id),
        case=case_view(profiles.case),
        cases=tuple(case_view(other) for other in profiles.experiment.cases.all()),
        asked=asked,
        columns=tuple(_columns(profiles)),
        symbols=symbols.rows(symbols.order()[:rows]) if symbols else (),
        splits=_splits(profiles, asked) if split else (),
        changes=changes,
        claims=claims,
    )


def neighbours(
    experiment_id: int, case_id: int, symbol: str, *, rows: int = 20, kind: str = ""
) -> Neighbours:
    """Return who calls a symbol and what it calls, per variant; at most `rows` of either. Raises UnknownRow.

    All rows are empty where no sample holds the symbol. kind: cpu if empty.
    """
    profiles = case_profiles(experiment_id, case_id, kind=kind)
    variants = tuple(variant.name for variant in profiles.variants)
    tree = profiles.tree
    if not variants or symbol not in tree.names:
        return Neighbours(symbol, (), variants, (), (), ())
    callers, callees = caller_counts(tree, [symbol]), callee_counts(tree, symbol)
    families = [callers.total, callers.by_caller.samples, callees.samples]
    total, above, below = _tables(profiles, families)
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


def _shares(profiles: CaseProfiles, families: Sequence[Integers]) -> tuple[tuple[VariantShares, ...], ...]:
    """Return each family's rows by variant, that of all symbols last: how boots vary is learnt from it, whatever else is asked for."""
    return share_table(
        [*families, _symbol_family(profiles.tree)],
        profiles.tree.samples,
        profiles.owners,
        base=profiles.base,
        twin=profiles.twin,
        unit=profiles.unit,
    )


def _tables(profiles: CaseProfiles, families: Sequence[Integers]) -> list[list[tuple[ShareCell, ...]]]:
    """Return the cells of each family's rows."""
    return [_cells(family, profiles) for family in _shares(profiles, families)[:-1]]


def _symbol_family(tree: UnitedTree) -> Integers:
    """int64[2 names, profiles]: own samples, then total ones. They are read as one line a symbol: one family."""
    counts = symbol_counts(tree)
    return np.concatenate((counts.own, counts.total))


def _whole(profiles: CaseProfiles, place: int) -> float:
    """All of a variant's waiting, or instructions, a boot."""
    own = profiles.of(place)
    return float(profiles.tree.samples[profiles.drawn(own) if profiles.kind == EXACT else own].mean())


def _cells(
    family: Sequence[VariantShares], profiles: CaseProfiles, places: Integers | slice = slice(None)
) -> list[tuple[ShareCell, ...]]:
    """Return the cells of a family's rows, or of those at some places."""
    unit = profiles.unit
    columns: list[list[ShareCell]] = []
    for place, variant in enumerate(family):
        interval, moved = variant.interval, variant.shifts
        level = interval.share[places]
        nothing: Iterable[None] = repeat(None)
        shares = level if unit == "samples" else level / (_whole(profiles, place) or 1.0)
        cells = map(
            ShareCell,
            shares.tolist(),
            _known(interval.low[places]),
            _known(interval.high[places]),
            _known(moved.log_ratio[places]) if moved else nothing,
            _known(moved.q[places]) if moved else nothing,
            nothing if unit == "samples" else _known(level),
            repeat(unit),
        )
        columns.append(list(cells))
    return list(zip(*columns, strict=True))


def _known(values: Floats) -> list[float | None]:
    """Return values, None for each NaN, which is what an array says for nothing."""
    known = values.astype(object)
    known[np.isnan(values)] = None
    listed: list[float | None] = known.tolist()
    return listed


@dataclass(frozen=True, eq=False)
class _Symbols:
    """What is known of all symbols. shares: each variant's, of own samples of each name, then of total ones."""

    profiles: CaseProfiles
    shares: Sequence[VariantShares]

    @cached_property
    def levels(self) -> Floats:
        """float64[variants, own or total, names]: shares, or amounts where those are compared."""
        return self._by_name([variant.interval.share for variant in self.shares])

    @cached_property
    def certain(self) -> Flags:
        """bool[variants, own or total, names]: whether it differs from the base's for more than chance."""
        none = np.zeros(2 * len(self.profiles.tree.names), bool)
        return self._by_name([one.shifts.q <= CERTAIN if one.shifts else none for one in self.shares])

    @cached_property
    def seen(self) -> Flags:
        """bool[names]: whether any variant has a sample of it."""
        seen: Flags = np.any(self.levels[:, 1] != 0, axis=0)
        return seen

    def _by_name(self, of_variants: Sequence[NDArray[Any]]) -> NDArray[Any]:
        return np.stack(of_variants).reshape(len(of_variants), 2, -1)

    def order(self) -> Integers:
        """int64[symbols]: places of names by their largest certain change; of those without one by their largest own share anywhere."""
        base = self.profiles.base
        moved = np.zeros(self.levels.shape[2])
        if base is not None:
            moved = np.where(self.certain, np.abs(self.levels - self.levels[base]), 0.0).max(axis=(0, 1))
        order = np.lexsort((np.array(self.profiles.tree.names), -self.levels[:, 0].max(axis=0), -moved))
        return order[self.seen[order]]

    def rows(self, places: Integers) -> tuple[SymbolRow, ...]:
        """Return the rows of some names."""
        tree, lines = self.profiles.tree, self.profiles.lines
        own, total = (_cells(self.shares, self.profiles, places + start) for start in (0, len(tree.names)))
        names = [tree.names[place] for place in places]
        raw = [tree.raw.get(int(place), ()) for place in places]
        return tuple(
            SymbolRow(*row)
            for row in zip(names, raw, own, total, map(lines.get, names, repeat("")), strict=True)
        )

    def measured(self, place: int) -> Iterator[Measured]:
        """Yield each symbol of one variant and of the base: in itself, or with what it calls where only that changed or it does nothing itself."""
        base, tree = self.profiles.base, self.profiles.tree
        own, total = self.certain[place, 0], self.certain[place, 1]
        idle = self.levels[base, 0] + self.levels[place, 0] == 0
        alone: Flags = own | ~(total | idle)
        before, after, certain = (
            np.where(alone, *values)
            for values in (self.levels[base], self.levels[place], self.certain[place])
        )
        for at in np.flatnonzero(self.seen).tolist():
            yield Measured(
                tree.names[at],
                float(before[at]),
                float(after[at]),
                bool(certain[at]),
                not alone[at],
                line=self.profiles.lines.get(tree.names[at], ""),
            )


def _claims(symbols: _Symbols) -> tuple[VariantClaims, ...]:
    """Return, of each candidate, the functions in its diffs beside its share of them and the base's."""
    profiles = symbols.profiles
    base = profiles.base
    if base is None:
        return ()
    variants = Variant.objects.select_related("experiment").in_bulk(
        [variant.id for variant in profiles.variants]
    )
    claimed = (
        claims_of(
            variants[variant.id],
            base=profiles.variants[base].name,
            unit=profiles.unit,
            measured=symbols.measured(place),
        )
        for place, variant in enumerate(profiles.variants)
        if variant.role == Role.CANDIDATE
    )
    return tuple(claims for claims in claimed if claims)


def _splits(profiles: CaseProfiles, asked: tuple[str, ...]) -> tuple[CallerSplit, ...]:
    counts = caller_counts(profiles.tree, asked)
    if not counts.total.any():
        return ()
    parts: list[tuple[tuple[str, ...], Counts]] = [(asked, counts.by_caller)]
    if len(asked) > 1:
        parts += [((symbol,), own) for symbol, own in counts.by_symbol]
    # A total and its callers are read together: one family for each table.
    families = [np.concatenate((own.samples.sum(axis=0, keepdims=True), own.samples)) for _, own in parts]
    tables = _tables(profiles, families)
    return tuple(
        CallerSplit(symbols, cells[0], _rows(own, cells[1:]))
        for (symbols, own), cells in zip(parts, tables, strict=True)
    )


def _rows(counts: Counts, cells: Sequence[tuple[ShareCell, ...]]) -> tuple[CallerRow, ...]:
    return tuple(CallerRow(name, own) for name, own in zip(counts.names, cells, strict=True))
