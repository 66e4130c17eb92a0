# SPDX-License-Identifier: GPL-2.0-or-later
"""Read profiles for the page: symbols of all variants side by side, their callers and callees.

Every share is of the samples of busy CPUs, over all counted boots of a variant. Of waits it is nanoseconds waited a boot
that are compared; their share of all waiting is shown beside them.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat

import numpy as np

from lab.experiments.shown_description import case_view
from lab.models import Variant
from lab.models.states import Role
from lab.profiles.analysis.frame_alignment import Flags, Integers, UnitedTree
from lab.profiles.analysis.frame_shifts import doubt
from lab.profiles.analysis.share_shifts import Floats
from lab.profiles.analysis.share_table import VariantShares, share_table
from lab.profiles.analysis.symbol_counts import Counts, callee_counts, caller_counts, symbol_counts
from lab.profiles.analysis.weight_unit import Unit
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
    symbols = _symbol_rows(profiles)
    changes = exact_changes(case_id) if profiles.kind == EXACT else ()
    claims = (
        tuple(change.claims for change in changes if change.claims) if changes else _claims(profiles, symbols)
    )
    return ProfilePage(
        experiment_id=experiment_id,
        name=profiles.experiment.name,
        kind=profiles.kind,
        costs=profiling_costs(case_id),
        case=case_view(profiles.case),
        cases=tuple(case_view(other) for other in profiles.experiment.cases.all()),
        asked=asked,
        columns=tuple(_columns(profiles)),
        symbols=symbols[:rows],
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
    table = share_table(rows, whole, owners, base=base, twin=twin, unit=profiles.unit)
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
    columns: list[list[ShareCell]] = []
    for place, variant in enumerate(family):
        level, moved = variant.interval.share, variant.shifts
        nothing: Iterable[None] = repeat(None)
        shares = level if unit == "samples" else level / (wholes[place] or 1.0)
        cells = map(
            ShareCell,
            shares.tolist(),
            _known(variant.interval.low),
            _known(variant.interval.high),
            _known(moved.log_ratio) if moved else nothing,
            _known(moved.q) if moved else nothing,
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


def _claims(profiles: CaseProfiles, symbols: Sequence[SymbolRow]) -> tuple[VariantClaims, ...]:
    """Return, of each candidate, the functions in its diffs beside its share of them and the base's."""
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
            measured=(_measured(row, base, place) for row in symbols),
        )
        for place, variant in enumerate(profiles.variants)
        if variant.role == Role.CANDIDATE
    )
    return tuple(claims for claims in claimed if claims)


def _measured(row: SymbolRow, base: int, place: int) -> Measured:
    """One symbol in itself; with what it calls where only that changed, or where it does nothing itself."""
    alone = row.own[place].certain or not (
        row.total[place].certain or row.own[base].size + row.own[place].size == 0
    )
    cells = row.own if alone else row.total
    return Measured(
        row.symbol, cells[base].size, cells[place].size, cells[place].certain, not alone, line=row.line
    )


def _symbol_rows(profiles: CaseProfiles) -> tuple[SymbolRow, ...]:
    """Symbols by their largest certain change; those without one behind, by their largest own share anywhere."""
    tree = profiles.tree
    if not profiles.variants:
        return ()
    (cells,) = _tables(profiles, [])
    rows = [
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

    return tuple(sorted(rows, key=weight))


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
