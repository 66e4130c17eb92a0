# SPDX-License-Identifier: GPL-2.0-or-later
"""The linear model of a block design, by least squares: number of a boot = block + arm + noise.

A block is one round of boots in random order. Drift between rounds goes into the blocks; an arm that
is missing from a block does not affect the others. All functions take many experiments of one
layout at once: values have the shape (..., boots), statistics (...).
Source: Box, Hunter & Hunter, Statistics for Experimenters, 2nd ed. 2005, ch. 4 (randomised blocks).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
BASE, CANDIDATE = 0, 1
# Below this share of the values' size a spread is rounding of the last binary digit, not chance.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Fit:
    """Shift of the candidate, its standard error, degrees of freedom, and sd of a boot: shape (...)."""

    shift: Floats
    error: Floats
    freedom: Floats
    sd: Floats

    def p_value(self) -> Floats:
        """Return the two-sided p-value of no shift, from Student's t; 1 where nothing shifts."""
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(self.shift == 0, 0.0, np.abs(self.shift) / self.error)
        return np.asarray(2 * scipy.stats.t.sf(t, self.freedom), dtype=float)

    def half_width(self, level: float) -> Floats:
        """Return half the width of the interval of that level."""
        return np.asarray(scipy.stats.t.ppf((1 + level) / 2, self.freedom) * self.error, dtype=float)


@dataclass(frozen=True)
class BlockLayout:
    """The block and the arm of each boot: shape (boots,). Arm 0 is the base, 1 the candidate."""

    block: Ints
    arm: Ints

    @cached_property
    def design(self) -> Floats:
        """Columns of the model: one a block, one an arm but the base; shape (boots, columns)."""
        blocks = self.block[:, None] == np.unique(self.block)[None, :]
        arms = self.arm[:, None] == np.setdiff1d(np.unique(self.arm), [BASE])[None, :]
        return np.hstack([blocks, arms]).astype(float)

    @cached_property
    def inverse(self) -> Floats:
        """Pseudo-inverse of the design: what turns values into its coefficients, shape (columns, boots)."""
        return np.asarray(np.linalg.pinv(self.design), dtype=float)

    @cached_property
    def freedom(self) -> int:
        """Degrees of freedom the model leaves."""
        return int(self.block.size - np.linalg.matrix_rank(self.design))

    @cached_property
    def without_candidate(self) -> "BlockLayout":
        """The layout of all boots but the candidate's."""
        return self.only(self.arm != CANDIDATE)

    @cached_property
    def averaging(self) -> Floats:
        """Matrix that puts each boot's block mean in its place, shape (boots, boots)."""
        same = np.asarray(self.block[:, None] == self.block[None, :], dtype=float)
        means: Floats = same / same.sum(axis=1, keepdims=True)
        return means

    @cached_property
    def contrasts(self) -> Floats:
        """Candidate minus mean of the base's boots, by block that holds both; shape (shared, boots)."""
        rows = []
        for block in np.unique(self.block):
            here = self.block == block
            ours, base = here & (self.arm == CANDIDATE), here & (self.arm == BASE)
            if ours.any() and base.any():
                rows.append(ours / ours.sum() - base / base.sum())
        return np.array(rows, dtype=float).reshape(len(rows), self.block.size)

    def only(self, keep: NDArray[np.bool_]) -> "BlockLayout":
        """Return the layout of some of the boots."""
        return BlockLayout(self.block[keep], self.arm[keep])


def residuals(values: Floats, layout: BlockLayout) -> Floats:
    """Return what the model leaves unexplained."""
    return np.asarray(values - (values @ layout.inverse.T) @ layout.design.T, dtype=float)


def pooled(values: Floats, layout: BlockLayout) -> Fit:
    """Return the shift with the noise pooled over all arms, which has the most degrees of freedom."""
    column = np.unique(layout.block).size  # the candidate's: arms are sorted and it is the first
    row = layout.inverse[column]
    shift = values @ row
    sd = np.sqrt((residuals(values, layout) ** 2).sum(axis=-1) / max(layout.freedom, 1))
    # pinv(X) pinv(X)' = (X'X)^-1 where the candidate is distinguishable from its blocks at all.
    return Fit(shift, np.sqrt(row @ row) * sd, np.full(shift.shape, float(layout.freedom)), sd)


def paired(values: Floats, layout: BlockLayout) -> Fit:
    """Return the shift with the noise of its own differences, block by block: paired t."""
    weights = layout.contrasts
    differences = values @ weights.T
    blocks = weights.shape[0]
    spread = differences.std(axis=-1, ddof=1)
    unit = float(np.mean((weights**2).sum(axis=1)))
    shift = differences.mean(axis=-1)
    return Fit(shift, spread / np.sqrt(blocks), np.full(shift.shape, blocks - 1.0), spread / np.sqrt(unit))


def tails(values: Floats, layout: BlockLayout) -> tuple[Floats, Floats]:
    """Return the p-values of the candidate's differences varying more, and varying less, than if arms are alike.

    F test of the variance of the differences, per unit, against the residual of a model without the
    candidate; 1 and 1 where there is nothing to compare with. A shift does not change them.
    """
    other, own = layout.without_candidate, paired(values, layout)
    if other.freedom < 1:
        return np.ones(own.shift.shape), np.ones(own.shift.shape)
    left = residuals(values[..., layout.arm != CANDIDATE], other)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = own.sd**2 / ((left**2).sum(axis=-1) / other.freedom)
    more = scipy.stats.f.sf(ratio, own.freedom, other.freedom)
    less = scipy.stats.f.cdf(ratio, own.freedom, other.freedom)
    return np.nan_to_num(more, nan=1.0), np.nan_to_num(less, nan=1.0)


def disagreement(values: Floats, layout: BlockLayout) -> Floats:
    """Return the p-value of the candidate's differences varying no more than the other arms' boots suggest.

    One-sided: a candidate that varies less is judged too strictly by the others' variance, but its own
    variance of few boots, taken because it came out small, would raise false alarms by a fifth.
    """
    return tails(values, layout)[0]


def guarded(values: Floats, layout: BlockLayout, *, alpha: float) -> tuple[Fit, NDArray[np.bool_]]:
    """Return the pooled fit, or the paired one where the candidate varies clearly more; and flags of where it does."""
    alone = disagreement(values, layout) < alpha
    own, common = paired(values, layout), pooled(values, layout)
    return _chosen(alone, own, common), alone


def cautious(values: Floats, layout: BlockLayout) -> Fit:
    """Return the pooled or the paired fit, whichever is less sure of a shift.

    Looks at unfinished data stop at p-values of less than 1 %, where a wrong variance matters most: a candidate four
    times as noisy as the base was called in 6 % of looks at 3 blocks that may spend 0.9 %.
    """
    own, common = paired(values, layout), pooled(values, layout)
    return _chosen(own.p_value() > common.p_value(), own, common)


def _chosen(first: NDArray[np.bool_], own: Fit, common: Fit) -> Fit:
    names = ("shift", "error", "freedom", "sd")
    return Fit(*(np.where(first, getattr(own, name), getattr(common, name)) for name in names))
