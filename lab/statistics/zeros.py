# SPDX-License-Identifier: GPL-2.0-or-later
"""Compare boots of which some are exactly 0: by order, since there is no ratio and no logarithm.

Ranks of the values decide, for any number of blocks. The result is how often a boot of the candidate lies
above or below one of the base, and the typical difference in the metric's unit, with the interval of the rank test
where it has one: where many boots are 0, no shift of all boots by the same amount fits the data, and
there is only the difference of means.
"""

from dataclasses import dataclass
from math import comb, isfinite, prod

import numpy as np
import scipy

from lab.statistics.block_model import BASE, CANDIDATE, BlockLayout, Floats, cautious, guarded
from lab.statistics.rank_test import GUARD, RANK_BOOTS, bounded, chance, rank_test


@dataclass(frozen=True, slots=True)
class Ranked:
    """The position of the candidate's boots relative to the base's. above, below: shares of all pairs. rises: the test's direction.

    difference: candidate less base, metric's unit; without low and high it is that of the means.
    """

    zeros: int
    boots: int
    above: float
    below: float
    rises: bool
    difference: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class RankVerdict:
    """p-value of no difference in order, degrees of freedom (None if orders were counted), and how the sides lie."""

    p_value: float
    freedom: float | None
    ranked: Ranked


def orders(layout: BlockLayout) -> float:
    """Return the chance of the rarest order of two arms within blocks; with equally many boots a side, two orders are equally rare."""
    ours = layout.arm == CANDIDATE
    rarest = prod(comb(int(sizes.sum()), int(sizes[1])) for sizes in _sizes(layout))
    return (2 if 2 * np.count_nonzero(ours) == ours.size else 1) / rarest


def _sizes(layout: BlockLayout) -> list[np.ndarray[tuple[int], np.dtype[np.intp]]]:
    """By block, its boots of the base and of the candidate."""
    return [np.bincount(layout.arm[layout.block == block], minlength=2) for block in np.unique(layout.block)]


def zero_p_values(values: Floats, layout: BlockLayout, *, looks: bool = False) -> Floats:
    """Return the p-values of many experiments; values: 0 or more, shape (..., boots), base and candidate only."""
    return _tested(values, layout, looks)[0]


def _tested(values: Floats, layout: BlockLayout, looks: bool) -> tuple[Floats, Floats, Floats]:
    """Return p-values, degrees of freedom, and the shift of ranks."""
    ranks = np.asarray(scipy.stats.rankdata(values, axis=-1), dtype=float)
    if layout.block.size >= RANK_BOOTS:
        test = rank_test(values, layout, chance(ranks, layout))
        return test.p_value, test.freedom, test.shift
    fit = cautious(ranks, layout) if looks else guarded(ranks, layout, alpha=GUARD)[0]
    # So few ranks are too coarse for t alone: p is never smaller than the chance of the rarest order.
    return np.maximum(fit.p_value(), min(orders(layout), 1.0)), fit.freedom, fit.shift


def judge_ranks(values: Floats, layout: BlockLayout, *, level: float, looks: bool) -> RankVerdict:
    """Judge boots of base and candidate in blocks that hold both; values: finite, 0 or more, some 0, shape (boots,)."""
    ours = layout.arm == CANDIDATE
    size = float(np.max(values))
    scaled = values / size
    p_value, freedom, shift = (float(part) for part in _tested(scaled, layout, looks))
    counted = not np.ptp(scaled[ours]) and not np.ptp(scaled[~ours])
    if counted:  # boots of each side agree exactly: any of them could have been the odd ones
        p_value = (2 if 2 * np.count_nonzero(ours) == ours.size else 1) / comb(
            ours.size, int(np.count_nonzero(ours))
        )
    difference, low, high = _difference(scaled, layout, p_value, level)
    pairs = scaled[ours][:, None] - scaled[layout.arm == BASE][None, :]
    ranked = Ranked(
        zeros=int(np.count_nonzero(values == 0)),
        boots=int(values.size),
        above=float(np.mean(pairs > 0)),
        below=float(np.mean(pairs < 0)),
        rises=shift > 0,
        difference=difference * size,
        low=None if low is None else low * size,
        high=None if high is None else high * size,
    )
    return RankVerdict(p_value, None if counted else freedom, ranked)


def _difference(
    values: Floats, layout: BlockLayout, p_value: float, level: float
) -> tuple[float, float | None, float | None]:
    """Return the typical difference and its interval, if the rank test gives one that agrees with its p-value."""
    ours = layout.arm == CANDIDATE
    means = float(values[ours].mean() - values[~ours].mean())
    if values.size < RANK_BOOTS:
        return means, None, None
    interval = bounded(values, layout, chance(np.asarray(scipy.stats.rankdata(values)), layout), level=level)
    known = isfinite(interval.low) and isfinite(interval.high) and interval.low < interval.high
    if not known or (p_value <= 1 - level) == (interval.low <= 0 <= interval.high):
        return means, None, None
    return interval.shift, interval.low, interval.high
