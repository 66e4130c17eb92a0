# SPDX-License-Identifier: GPL-2.0-or-later
"""A shift between two arms by ranks within blocks: what one wild boot cannot move.

Boots of real guests are often bimodal or heavy-tailed, and the mean of their logs then wastes most of them. So
boots are ranked together, after as much of their block's mean is taken away as the blocks differ
(none if they do not), and Student's t is computed on the ranks. Its 95 % interval holds every shift that, taken from
the candidate's boots, leaves a t that is not significant.

Sources: Hodges & Lehmann, Ann. Math. Stat. 33, 1962 (ranks after alignment, estimate by pairs); Conover & Iman,
Am. Stat. 35(3), 1981 (Student's t on ranks). Taking away only part of a block's mean is the usual shrinkage of
recovering information between blocks (Yates 1940).
"""

from dataclasses import dataclass, replace
from math import inf

import numpy as np
import scipy
from numpy.typing import NDArray

from lab.analysis.blocks import BASE, CANDIDATE, ROUNDING, Fit, Floats, Layout, guarded, paired, residuals

# From this many shared blocks the differences' own variance is used: it is right even where arms differ in
# their noise, and costs few degrees of freedom. Below, the variance of all boots, with a guard.
OWN_VARIANCE_BLOCKS = 8
GUARD = 0.01
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


def aligned(values: Floats, layout: Layout) -> Floats:
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


def _rough_shift(values: Floats, layout: Layout) -> Floats:
    """Median difference of a candidate's and a base's boot in one block."""
    ours, base = np.nonzero(layout.arm == CANDIDATE)[0], np.nonzero(layout.arm == BASE)[0]
    i, j = (axis.ravel() for axis in np.meshgrid(ours, base, indexing="ij"))
    same = layout.block[i] == layout.block[j]
    return np.asarray(np.median(values[..., i[same]] - values[..., j[same]], axis=-1), dtype=float)


def rank_fit(values: Floats, layout: Layout) -> tuple[Fit, NDArray[np.bool_]]:
    """Return Student's t on the ranks of aligned values, and where its own variance was used, shape (...)."""
    ranks = np.asarray(scipy.stats.rankdata(values, axis=-1), dtype=float)
    if layout.contrasts.shape[0] >= OWN_VARIANCE_BLOCKS:
        fit, own = paired(ranks, layout), np.ones(values.shape[:-1], dtype=bool)
    else:
        fit, own = guarded(ranks, layout, alpha=GUARD)
    # One degree of freedom goes to the share of the blocks' means.
    return replace(fit, freedom=fit.freedom - 1), own


def rank_shift(values: Floats, layout: Layout, *, level: float) -> RankShift:
    """Return the shift between base and candidate. values: logs, shape (boots,); no other arms."""
    flat = aligned(values, layout)
    ours = layout.arm == CANDIDATE
    differences = np.unique(np.round(flat[ours][:, None] - flat[~ours][None, :], DIGITS))
    centre = float(np.median(flat[ours][:, None] - flat[~ours][None, :]))
    fit, alone = rank_fit(flat, layout)
    if not np.any(fit.error):
        return RankShift(centre, -inf, inf, 1.0, float(fit.freedom), bool(alone))
    low, high = (_bound(flat, layout, differences, centre, level, side) for side in (-1, 1))
    return RankShift(centre, low, high, float(fit.p_value()), float(fit.freedom), bool(alone))


def _bound(
    flat: Floats, layout: Layout, differences: Floats, centre: float, level: float, side: int
) -> float:
    """Return the farthest shift on one side that is not significant, by bisection over the differences.

    The ranks change only where a shift passes one of the differences, so it is tried between them.
    """
    steps = differences[differences > centre] if side > 0 else differences[differences < centre][::-1]
    if not steps.size:
        return centre
    ours = (layout.arm == CANDIDATE).astype(float)

    def fits(shift: float) -> bool:
        fit, _ = rank_fit(np.round(flat - shift * ours, DIGITS), layout)
        return bool(fit.p_value() > 1 - level)

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


def p_values(logs: Floats, layout: Layout) -> Floats:
    """Return the p-values estimate() gives for many experiments of one layout; logs: shape (..., boots).

    Without the interval, which costs most: for simulations of error rates and power.
    """
    two = layout.arm <= CANDIDATE
    if np.count_nonzero(two) >= RANK_BOOTS:
        fit, _ = rank_fit(aligned(logs[..., two], layout.only(two)), layout.only(two))
    else:
        fit, _ = guarded(logs, layout, alpha=GUARD)
    return fit.p_value()
