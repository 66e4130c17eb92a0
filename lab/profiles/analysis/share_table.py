# SPDX-License-Identifier: GPL-2.0-or-later
"""Shares, or times waited, of all variants side by side, with intervals, and shifts against the base.

Rows come in families. How much boots vary is learnt from the rows of all of them; the false-discovery rate is kept
within each, since one reads a family as a whole.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lab.profiles.analysis.count_shifts import compare_counts, count_levels
from lab.profiles.analysis.frame_alignment import Integers
from lab.profiles.analysis.frame_shifts import sides_of
from lab.profiles.analysis.share_shifts import Interval, Shifts, adjusted, compare, intervals
from lab.profiles.analysis.wait_shifts import compare_waits, wait_intervals
from lab.profiles.analysis.weight_unit import Unit, is_waited


@dataclass(frozen=True, eq=False)
class VariantShares:
    """One variant's rows of one family; shifts is None for the base, and where the base has no profile."""

    interval: Interval
    shifts: Shifts | None


def share_table(
    families: Sequence[Integers], samples: Integers, owners: Integers, *, base: int | None, twin: int | None
) -> tuple[tuple[VariantShares, ...], ...]:
    """Shares of every variant, for each family in turn.

    families: each int64[rows, profiles]. samples, owners: int64[profiles], of each profile all its samples and the index of
    its variant, from 0 without gaps. base, twin: those among them, None where there is none.
    """
    counts = np.concatenate(families)
    bounds = np.cumsum([len(family) for family in families])[:-1]
    columns = []
    for variant in range(int(owners.max(initial=-1)) + 1):
        interval = intervals(counts, samples, owners, variant)
        shifts = None
        if base is not None and variant != base:
            shifts = compare(counts, samples, sides_of(owners, base=base, candidate=variant, twin=twin))
        columns.append(_by_family(interval, shifts, bounds))
    return tuple(zip(*columns, strict=True)) if columns else tuple(() for _ in families)


def amount_table(
    families: Sequence[Integers],
    whole: Integers,
    owners: Integers,
    *,
    base: int | None,
    twin: int | None,
    unit: Unit,
) -> tuple[tuple[VariantShares, ...], ...]:
    """As share_table, of times or cycles waited, or instructions executed, a boot: they take the place of the shares in its answer.

    A patch that ends one wait makes the shares of all others larger; it is time that they cost, and that is compared.
    """
    amounts = np.concatenate(families)
    bounds = np.cumsum([len(family) for family in families])[:-1]
    levels, judge = (wait_intervals, compare_waits) if is_waited(unit) else (count_levels, compare_counts)
    columns = []
    for variant in range(int(owners.max(initial=-1)) + 1):
        interval = levels(amounts, owners, variant)
        shifts = None
        if base is not None and variant != base:
            shifts = judge(amounts, whole, sides_of(owners, base=base, candidate=variant, twin=twin))
        columns.append(_by_family(interval, shifts, bounds, exact=unit == "instructions"))
    return tuple(zip(*columns, strict=True)) if columns else tuple(() for _ in families)


def _by_family(
    interval: Interval, shifts: Shifts | None, bounds: Integers, *, exact: bool = False
) -> list[VariantShares]:
    parts = (np.split(values, bounds) for values in (interval.share, interval.low, interval.high))
    apart = [Interval(*part) for part in zip(*parts, strict=True)]
    if shifts is None:
        return [VariantShares(part, None) for part in apart]
    columns = zip(
        *(np.split(v, bounds) for v in (shifts.base, shifts.candidate, shifts.log_ratio, shifts.p)),
        strict=True,
    )
    moved = [Shifts(old, new, ratio, p, p if exact else adjusted(p)) for old, new, ratio, p in columns]
    return [VariantShares(part, own) for part, own in zip(apart, moved, strict=True)]
