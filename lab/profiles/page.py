# SPDX-License-Identifier: GPL-2.0-or-later
"""Read profiles for the page: symbols of all variants side by side, their callers and callees.

Every share is of the samples of busy CPUs, over all counted boots of a variant. For waits, nanoseconds waited a boot
are compared; their share of all waiting is shown beside them.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from lab.experiments.shown_description import case_views
from lab.profiles.analysis.frame_alignment import Flags
from lab.profiles.analysis.frame_shifts import doubt
from lab.profiles.analysis.symbol_counts import Counts, callee_counts, caller_counts
from lab.profiles.case_profiles import (
    EXACT,
    CaseProfiles,
    case_profiles,
    profiling_costs,
    watched,
)
from lab.profiles.cells import cell_tables
from lab.profiles.claims import VariantClaims
from lab.profiles.exact import exact_changes
from lab.profiles.shape import (
    CallerRow,
    CallerSplit,
    Neighbours,
    ProfileColumn,
    ProfilePage,
    ShareCell,
)
from lab.profiles.symbol_table import symbol_table


def profile_page(
    experiment_id: int,
    case_id: int,
    *,
    asked: tuple[str, ...] = (),
    rows: int = 60,
    kind: str = "",
) -> ProfilePage:
    """Return one kind of profiles of one case, at most `rows` symbols of them. Raises UnknownRow.

    asked: symbols whose share is split by caller; those the workload says to watch if none. kind: cpu if empty.
    """
    profiles = case_profiles(experiment_id, case_id, kind=kind)
    cases = case_views(profiles.experiment)
    asked = asked or watched(profiles)
    table = symbol_table(profiles) if profiles.variants else None
    changes = exact_changes(case_id) if profiles.kind == EXACT else ()
    claims: Iterable[VariantClaims | None] = ()
    if changes:
        claims = (change.claims for change in changes)
    elif table:
        claims = map(table.claims, range(len(profiles.variants)))
    return ProfilePage(
        experiment_id=experiment_id,
        name=profiles.experiment.name,
        kind=profiles.kind,
        costs=profiling_costs(case_id),
        case=next(case for case in cases if case.id == case_id),
        cases=cases,
        asked=asked,
        columns=tuple(_columns(profiles)),
        symbols=table.rows(table.order()[:rows]) if table else (),
        splits=_splits(profiles, asked),
        changes=changes,
        claims=tuple(claim for claim in claims if claim),
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
    total, above, below = cell_tables(profiles, families)
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
    for place, variant in enumerate(profiles.variants):
        yield ProfileColumn(
            variant_id=variant.id,
            variant=variant.name,
            role=variant.role,
            boots=variant.boots,
            left_out=variant.left_out,
            idle=_idle(profiles, profiles.of(place)),
            doubt=variant_doubt(profiles, place),
        )


def variant_doubt(profiles: CaseProfiles, place: int) -> str:
    """Return why no share of a variant can differ significantly from the base's, or ""; always "" for the base."""
    base = profiles.base
    if base is None or place == base:
        return ""
    return doubt(profiles.tree, profiles.sides(base=base, candidate=place), unit=profiles.unit)


def _idle(profiles: CaseProfiles, own: Flags) -> float:
    """The fraction of some profiles' samples that is left out."""
    left = int(profiles.tree.resting[:, own].sum())
    return left / max(left + int(profiles.tree.samples[own].sum()), 1)


def _splits(profiles: CaseProfiles, asked: tuple[str, ...]) -> tuple[CallerSplit, ...]:
    counts = caller_counts(profiles.tree, asked)
    if not counts.total.any():
        return ()
    parts: list[tuple[tuple[str, ...], Counts]] = [(asked, counts.by_caller)]
    if len(asked) > 1:
        parts += [((symbol,), own) for symbol, own in counts.by_symbol]
    # A total and its callers are read together: one family for each table.
    families = [np.concatenate((own.samples.sum(axis=0, keepdims=True), own.samples)) for _, own in parts]
    tables = cell_tables(profiles, families)
    return tuple(
        CallerSplit(symbols, cells[0], _rows(own, cells[1:]))
        for (symbols, own), cells in zip(parts, tables, strict=True)
    )


def _rows(counts: Counts, cells: Sequence[tuple[ShareCell, ...]]) -> tuple[CallerRow, ...]:
    return tuple(CallerRow(name, own) for name, own in zip(counts.names, cells, strict=True))
