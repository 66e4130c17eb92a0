# SPDX-License-Identifier: GPL-2.0-or-later
"""Estimate a shift between two arms by ranks within blocks, which one outlier cannot move.

Boots of real guests are often bimodal or heavy-tailed, and the mean of their logs then wastes most of them. So
boots are ranked together, after a share of their block's mean is subtracted: the larger, the more the blocks differ
(none if they do not). Student's t is computed on the ranks. Its 95 % interval holds every shift that, subtracted from
the candidate's boots, leaves a t that is not significant.

With 8 blocks and more, t is that of placements, right whatever the noise of either side; for a pair
without twin, it is that of the differences of ranks. With 5 to 7
the variance of all boots is used; but where the candidate's differences vary more than the other boots
suggest, their own variance, and where they vary less, both.

Sources: Hodges & Lehmann, Ann. Math. Stat. 33, 1962 (ranks after alignment, estimate by pairs); Conover & Iman,
Am. Stat. 35(3), 1981 (Student's t on ranks). Taking away only part of a block's mean is the usual shrinkage of
recovering information between blocks (Yates 1940).
"""

from dataclasses import dataclass, replace
from math import inf

import numpy as np
import scipy
from numpy.typing import NDArray

from lab.statistics.block_model import (
    BASE,
    CANDIDATE,
    ROUNDING,
    BlockLayout,
    Fit,
    Floats,
    cautious,
    guarded,
    paired,
    pooled,
    residuals,
    tails,
)

# From this many shared blocks the differences' own variance is used: it is right even where arms differ in
# their noise, and costs few degrees of freedom. Below, the variance of all boots, with a guard.
OWN_VARIANCE_BLOCKS = 8
GUARD = 0.01
# With ranks of 5 to 7 blocks: the candidate counts as noisier than the base where the p-value of its differences varying
# more is below this, and as calmer where that of varying less is. bench/stats.py has the error rates; no rule that
# keeps all of the power with equal noise keeps the level with unequal noise (a linear program over all rules of
# normal boots gave 69 % where the variance of all boots gives 78 %).
NOISIER, CALMER = 0.3, 0.3
# Ranks of 5 boots that all lie beyond the base's look the same however far they differ from each other: of 32
# much noisier candidates, two do so by chance. Where the candidate is noisier at this level, and typical differences (not one
# outlier) are this many times as far from their median as base and twin are from each other, a test of the differences must agree.
THROUGHOUT, THROUGHOUT_TIMES = 0.1, 1.5
# Boots of both sides together: 5 blocks with base, its twin and the candidate; 8 of a pair. With fewer, ranks are
# too coarse: 5 pairs gave up to 6.6 % false alarms.
RANK_BOOTS = 15
DIGITS = 12


@dataclass(frozen=True, slots=True)
class RankShift:
    """Log shift with interval and p-value; low and high are infinite where ranks do not bound it."""

    shift: float
    low: float
    high: float
    p_value: float
    freedom: float
    own_variance: bool


@dataclass(frozen=True, slots=True)
class Chance:
    """Flags where the candidate is noisier, and less noisy, than the base; shape (...). A shift does not change them.

    throughout: where it is much noisier in most blocks, and not because of single wild boots.
    """

    noisier: NDArray[np.bool_]
    calmer: NDArray[np.bool_]
    throughout: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class RankTest:
    """Student's t on ranks: p-values, degrees of freedom, where the differences' own variance was used; shape (...).

    shift: above 0 where the candidate's boots rank higher, in no unit.
    """

    p_value: Floats
    freedom: Floats
    own: NDArray[np.bool_]
    shift: Floats


def chance(values: Floats, layout: BlockLayout) -> Chance:
    """Return how the candidate's noise compares with the base's. values: shape (..., boots), not aligned."""
    more, less = tails(values, layout)
    throughout = (more < THROUGHOUT) & (_typical_noise(values, layout) > THROUGHOUT_TIMES)
    return Chance(more < NOISIER, less < CALMER, throughout)


def _typical_noise(values: Floats, layout: BlockLayout) -> Floats:
    """Return the median distance of differences from their median, over the distance of base and twin; shape (...)."""
    differences = values @ layout.contrasts.T
    own = np.abs(differences - np.median(differences, axis=-1, keepdims=True))
    other = layout.without_candidate
    apart = np.abs(residuals(values[..., layout.arm != CANDIDATE], other)).sum(axis=-1) / max(
        other.freedom, 1
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.nan_to_num(np.median(own, axis=-1) / apart, nan=0.0), dtype=float)


def aligned(values: Floats, layout: BlockLayout) -> Floats:
    """Return values less a share of their block's mean, shape (..., boots).

    The share is 1 - (residual / between blocks) mean squares of normal scores, at least 0: the
    part of the blocks' differences that is more than chance. The candidate's shift is first taken away.
    """
    z = values - _rough_shift(values, layout)[..., None] * (layout.arm == CANDIDATE)
    scores = scipy.stats.norm.ppf(scipy.stats.rankdata(z, axis=-1) / (layout.block.size + 1))
    left = residuals(scores, layout)
    centred = scores @ layout.averaging.T - scores.mean(axis=-1, keepdims=True)
    blocks = np.unique(layout.block).size
    between = (centred**2).sum(axis=-1) / max(blocks - 1, 1)
    within = (left**2).sum(axis=-1) / max(layout.freedom, 1)
    share = np.clip(1 - within / np.maximum(between, ROUNDING**2), 0, 1)
    return np.asarray(np.round(values - share[..., None] * (z @ layout.averaging.T), DIGITS), dtype=float)


def _rough_shift(values: Floats, layout: BlockLayout) -> Floats:
    """Median difference of a candidate's and a base's boot in one block."""
    ours, base = np.nonzero(layout.arm == CANDIDATE)[0], np.nonzero(layout.arm == BASE)[0]
    i, j = (axis.ravel() for axis in np.meshgrid(ours, base, indexing="ij"))
    same = layout.block[i] == layout.block[j]
    return np.asarray(np.median(values[..., i[same]] - values[..., j[same]], axis=-1), dtype=float)


def rank_test(values: Floats, layout: BlockLayout, noise: Chance) -> RankTest:
    """Test whether base or candidate rank higher; values: shape (..., boots), of these two arms only."""
    ranks = np.asarray(scipy.stats.rankdata(values, axis=-1), dtype=float)
    if layout.contrasts.shape[0] >= OWN_VARIANCE_BLOCKS:
        # For sides of equal size, ranks among all boots are right as well, and closer to their level.
        twin = np.count_nonzero(layout.arm == BASE) > np.count_nonzero(layout.arm == CANDIDATE)
        fit = placed_fit(values, layout) if twin else _less_one(paired(ranks, layout))
        return RankTest(fit.p_value(), fit.freedom, np.ones(fit.shift.shape, dtype=bool), fit.shift)
    own, common = paired(ranks, layout), _less_one(pooled(ranks, layout))
    shared, strict = common.p_value(), _less_one(own).p_value()
    between = np.sqrt(own.p_value() * shared)
    agreeing = np.where(noise.throughout, np.maximum(strict, paired(values, layout).p_value()), strict)
    p_value = np.where(noise.noisier, agreeing, np.where(noise.calmer, between, shared))
    freedom = np.where(noise.noisier, _less_one(own).freedom, common.freedom)
    return RankTest(p_value, freedom, noise.noisier, common.shift)


def _less_one(fit: Fit) -> Fit:
    """Return the fit less one degree of freedom, for the share of the blocks' means."""
    return replace(fit, freedom=np.maximum(fit.freedom - 1, 1.0))


def rank_shift(values: Floats, layout: BlockLayout, *, level: float) -> RankShift:
    """Return the shift between base and candidate. values: logs, shape (boots,); no other arms."""
    return bounded(aligned(values, layout), layout, chance(values, layout), level=level)


def bounded(flat: Floats, layout: BlockLayout, noise: Chance, *, level: float) -> RankShift:
    """Return the median difference of a candidate's and a base's boot, with the interval that the test gives."""
    ours = layout.arm == CANDIDATE
    differences = np.unique(np.round(flat[ours][:, None] - flat[~ours][None, :], DIGITS))
    centre = float(np.median(flat[ours][:, None] - flat[~ours][None, :]))
    test = rank_test(flat, layout, noise)
    own, freedom, p_value = bool(test.own), float(test.freedom), float(test.p_value)
    if not np.ptp(flat):
        return RankShift(centre, -inf, inf, 1.0, freedom, own)
    low, high = (_bound(flat, layout, noise, differences, centre, level, side) for side in (-1, 1))
    return RankShift(centre, low, high, p_value, freedom, own)


def _bound(
    flat: Floats,
    layout: BlockLayout,
    noise: Chance,
    differences: Floats,
    centre: float,
    level: float,
    side: int,
) -> float:
    """Return the farthest shift on one side that is not significant, by bisection over the differences.

    The ranks change only where a shift passes one of the differences, so shifts between these are tried.
    """
    steps = differences[differences > centre] if side > 0 else differences[differences < centre][::-1]
    if not steps.size:
        return centre
    ours = (layout.arm == CANDIDATE).astype(float)

    def fits(shift: float) -> bool:
        test = rank_test(np.round(flat - shift * ours, DIGITS), layout, noise)
        return bool(test.p_value > 1 - level)

    beyond = np.append(steps, steps[-1] + side * max(1.0, abs(float(steps[-1]))))
    if fits(float(beyond[-1])):
        return side * inf
    first, last = 0, steps.size  # the bound is steps[k] for the largest k whose step inwards fits
    while first < last:
        middle = (first + last) // 2
        if fits(float((beyond[middle] + beyond[middle + 1]) / 2)):
            first = middle + 1
        else:
            last = middle
    return float(steps[min(first, steps.size - 1)])


def p_values(logs: Floats, layout: BlockLayout, *, looks: bool = False) -> Floats:
    """Return the p-values estimate() gives for many experiments of one layout; logs: shape (..., boots).

    Without the interval, which costs most: for simulations of error rates and power.
    """
    two = layout.arm <= CANDIDATE
    if np.count_nonzero(two) >= RANK_BOOTS:
        pair, own = layout.only(two), logs[..., two]
        return rank_test(aligned(own, pair), pair, chance(own, pair)).p_value
    return cautious(logs, layout).p_value() if looks else guarded(logs, layout, alpha=GUARD)[0].p_value()


def freedom_of(blocks: int, base_arms: int) -> float:
    """Return the degrees of freedom of complete blocks with `base_arms` boots of the base each.

    For 5 to 7 blocks, the number that gives the average power of the mixture of variances, with normal noise.
    """
    if blocks < OWN_VARIANCE_BLOCKS:
        return blocks
    return blocks - TAKEN if base_arms > 1 else blocks - 2


# Degrees of freedom that the share of the blocks' means and the placements themselves take, beside the mean. With 3 normal
# noise raised 5.3 % false alarms at 10 boots, and skewed noise up to 6.1; with 3.5 they raise 5.0 and 5.9 (bench/stats.py).
TAKEN = 3.5


def placements(values: Floats, layout: BlockLayout) -> Floats:
    """Return each boot's placement among the other side's boots; values, result: shape (..., boots) of two arms."""
    ours = layout.arm == CANDIDATE
    among_all = scipy.stats.rankdata(values, axis=-1)
    placed = np.empty(values.shape)
    for side in (ours, ~ours):
        among_own = scipy.stats.rankdata(values[..., side], axis=-1)
        placed[..., side] = (among_all[..., side] - among_own) / np.count_nonzero(~side)
    return placed


def placed_fit(values: Floats, layout: BlockLayout) -> Fit:
    """Return the mean placement of the candidate's boots less a half, its error over blocks, degrees of freedom.

    values: shape (..., boots), base and candidate only. A block's part in the estimate is that of all its boots
    together, so that what the boots of one block share cancels.
    """
    placed = placements(values, layout)
    ours = layout.arm == CANDIDATE
    sizes = np.where(ours, np.count_nonzero(ours), np.count_nonzero(layout.arm == BASE))
    # The base's boots are placed among the candidate's: there a high placement means a low candidate.
    signed = np.where(ours, placed - 0.5, 0.5 - placed)
    mean = signed[..., ours].mean(axis=-1)
    parts = (signed - mean[..., None]) / sizes
    numbers = np.unique(layout.block)
    by_block = np.stack([parts[..., layout.block == block].sum(axis=-1) for block in numbers], axis=-1)
    variance = (by_block**2).sum(axis=-1) * numbers.size / (numbers.size - 1)
    # Sides that do not overlap show no variance: assume at least one pair's part of it.
    least = 1 / float(sizes.max() * sizes.min())
    error = np.where((variance == 0) & (mean == 0), 0.0, np.maximum(np.sqrt(variance), least))
    freedom = np.full(mean.shape, max(numbers.size - TAKEN, 1.0))
    return Fit(mean, error, freedom, np.sqrt(variance))
