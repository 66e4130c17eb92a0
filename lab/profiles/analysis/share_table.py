# SPDX-License-Identifier: GPL-2.0-or-later
"""Shares, or times waited, of all variants side by side, with intervals, and shifts against the base.

Rows come in families. The variation between boots is estimated from all families; the false-discovery rate is kept
within each, since a family is read as a whole.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from lab.profiles.analysis.count_shifts import compare_counts, count_levels
from lab.profiles.analysis.frame_alignment import Integers
from lab.profiles.analysis.frame_shifts import sides_of
from lab.profiles.analysis.share_shifts import Interval, Shifts, Sides, adjusted, compare, intervals
from lab.profiles.analysis.wait_shifts import compare_waits, wait_intervals
from lab.profiles.analysis.weight_unit import Unit, is_waited


@dataclass(frozen=True, eq=False)
class VariantShares:
    """One variant's rows of one family; shifts is None for the base, and where the base has no profile."""

    interval: Interval
    shifts: Shifts | None


def share_table(
    families: Sequence[Integers],
    samples: Integers,
    owners: Integers,
    *,
    base: int | None,
    twin: int | None,
    unit: Unit = "samples",
) -> tuple[tuple[VariantShares, ...], ...]:
    """Return shares of every variant, for each family in turn; for times or cycles waited, or instructions, the amounts a boot.

    families: each int64[rows, profiles]. samples, owners: int64[profiles], of each profile all its samples and the index of
    its variant, from 0 without gaps. base, twin: those among them, None where there is none.
    Waits are compared by amount, since a patch that ends one wait makes the shares of all others larger.
    """
    counts = np.concatenate(families)
    bounds = np.cumsum([len(family) for family in families])[:-1]
    levels: Callable[[Integers, int], Interval]
    judge: Callable[[Integers, Integers, Sides], Shifts]
    if unit == "samples":
        levels, judge = partial(intervals, counts, samples), compare
    elif is_waited(unit):
        levels, judge = partial(wait_intervals, counts), compare_waits
    else:
        levels, judge = partial(count_levels, counts), compare_counts
    columns = []
    for variant in range(int(owners.max(initial=-1)) + 1):
        shifts = None
        if base is not None and variant != base:
            shifts = judge(counts, samples, sides_of(owners, base=base, candidate=variant, twin=twin))
        columns.append(_by_family(levels(owners, variant), shifts, bounds, exact=unit == "instructions"))
    return tuple(zip(*columns, strict=True)) if columns else tuple(() for _ in families)


def _by_family(
    interval: Interval, shifts: Shifts | None, bounds: Integers, *, exact: bool
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
