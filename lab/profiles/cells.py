# SPDX-License-Identifier: GPL-2.0-or-later
"""Cells of the tables of a case's profiles: shares of all variants, with intervals and changes against the base."""

from collections.abc import Iterable, Sequence
from itertools import repeat

import numpy as np

from lab.profiles.analysis.frame_alignment import Integers, UnitedTree
from lab.profiles.analysis.share_shifts import Floats
from lab.profiles.analysis.share_table import VariantShares, share_table
from lab.profiles.analysis.symbol_counts import symbol_counts
from lab.profiles.case_profiles import EXACT, CaseProfiles
from lab.profiles.shape import ShareCell


def family_shares(
    profiles: CaseProfiles, families: Sequence[Integers]
) -> tuple[tuple[VariantShares, ...], ...]:
    """Return each family's rows by variant. The last family is all symbols: it shows how boots vary, whatever else is asked for."""
    return share_table(
        [*families, _symbol_family(profiles.tree)],
        profiles.tree.samples,
        profiles.owners,
        base=profiles.base,
        twin=profiles.twin,
        unit=profiles.unit,
    )


def cell_tables(profiles: CaseProfiles, families: Sequence[Integers]) -> list[list[tuple[ShareCell, ...]]]:
    """Return the cells of each family's rows."""
    return [cells(family, profiles) for family in family_shares(profiles, families)[:-1]]


def cells(
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
        made = map(
            ShareCell,
            shares.tolist(),
            known(interval.low[places]),
            known(interval.high[places]),
            known(moved.log_ratio[places]) if moved else nothing,
            known(moved.q[places]) if moved else nothing,
            nothing if unit == "samples" else known(level),
            repeat(unit),
        )
        columns.append(list(made))
    return list(zip(*columns, strict=True))


def known(values: Floats) -> list[float | None]:
    """Return values with None for each NaN, which means no value in an array."""
    numbers = values.astype(object)
    numbers[np.isnan(values)] = None
    listed: list[float | None] = numbers.tolist()
    return listed


def _whole(profiles: CaseProfiles, place: int) -> float:
    """All of a variant's waiting, or instructions, a boot."""
    own = profiles.of(place)
    return float(profiles.tree.samples[profiles.drawn(own) if profiles.kind == EXACT else own].mean())


def _symbol_family(tree: UnitedTree) -> Integers:
    """int64[2 names, profiles]: own samples, then total ones. Both are read in one line, so they are one family."""
    counts = symbol_counts(tree)
    return np.concatenate((counts.own, counts.total))
