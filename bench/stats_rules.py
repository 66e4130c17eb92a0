# SPDX-License-Identifier: GPL-2.0-or-later
"""Rules that call a change: ours, and those of LKP, LNT, Pinpoint and PerfCompare as their sources describe them.

All get the same boots. Each rule takes logs of boot numbers of the base, shape (trials, boots), and of the candidate, and
answers True where it calls a change. Ours also knows the blocks; theirs have no place for them.
The peers' code was read, not copied: lkp-tests lib/changed_stat.rb, lnt/server/reporting/analysis.py,
catapult dashboard/pinpoint/models/compare/, treeherder/perf/stats.py.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from lab.statistics.block_model import BASE, CANDIDATE, BlockLayout
from lab.statistics.rank_test import p_values
from lab.statistics.sequential import LOOKS, level_at

Floats = NDArray[np.float64]
Calls = NDArray[np.bool_]
Rule = Callable[[Floats, Floats], Calls]
ATTEMPTS = (10, 20, 40, 80, 160)
DIFFERENT = 0.01


def design(blocks: int, base_arms: int) -> BlockLayout:
    """Return the layout of boots in the order base block by block, then candidate."""
    base = np.repeat(np.arange(blocks), base_arms)
    arm = np.repeat(np.array([BASE, CANDIDATE], dtype=np.intp), [base.size, blocks])
    return BlockLayout(np.concatenate([base, np.arange(blocks)]), arm)


def our_p_values(base: Floats, candidate: Floats, *, looks: bool = False) -> Floats:
    """Return ours; the base's boots are in order of blocks, so many a block as it has more. looks: as of estimate()."""
    blocks = candidate.shape[1]
    return p_values(np.hstack([base, candidate]), design(blocks, base.shape[1] // blocks), looks=looks)


def ours(base: Floats, candidate: Floats) -> Calls:
    """The interval at 95 % excludes no change."""
    return np.asarray(our_p_values(base, candidate) <= 0.05, dtype=bool)


def lkp(base: Floats, candidate: Floats, *, least: float = 0.01) -> Calls:
    """Ranges against medians, and a change of at least 1 %, as for its key metrics."""
    a, b = np.exp(base), np.exp(candidate)
    middle_a, middle_b = np.median(a, axis=1), np.median(b, axis=1)
    above = (b.min(axis=1) > middle_a) & (middle_b > a.max(axis=1))
    below = (a.min(axis=1) > middle_b) & (middle_a > b.max(axis=1))
    return np.asarray((above | below) & (np.abs(middle_b / middle_a - 1) > least), dtype=bool)


def lnt(base: Floats, candidate: Floats) -> Calls:
    """Mann-Whitney from 4 samples on, then the distance of the candidate's best from the nearest of the base.

    It must exceed 1 % and 2.576 standard deviations of the candidate. Its floor of 0.01 s is left out: it depends on
    the unit.
    """
    a, b = np.exp(base), np.exp(candidate)
    best = b.min(axis=1)
    nearest = np.take_along_axis(a, np.abs(a - best[:, None]).argmin(axis=1)[:, None], axis=1)[:, 0]
    far = np.abs(best - nearest) > np.maximum(2.576 * b.std(axis=1, ddof=1), 0.01 * nearest)
    if min(a.shape[1], b.shape[1]) >= 4:
        far &= mann_whitney(base, candidate) <= 0.05
    return np.asarray(far, dtype=bool)


def perfcompare(base: Floats, candidate: Floats) -> Calls:
    """Mann-Whitney at 5 %, and Cliff's delta not negligible (0.15)."""
    u = stats.mannwhitneyu(candidate, base, axis=1).statistic
    delta = 2 * np.asarray(u) / (base.shape[1] * candidate.shape[1]) - 1
    return np.asarray((mann_whitney(base, candidate) <= 0.05) & (np.abs(delta) >= 0.15), dtype=bool)


def pinpoint(base: Floats, candidate: Floats) -> Calls:
    """One look: the smaller p-value of Mann-Whitney and Kolmogorov-Smirnov is at most 1 %."""
    return smaller_p(base, candidate) <= DIFFERENT


RULES: dict[str, Rule] = {
    "ours": ours,
    "LKP": lkp,
    "LNT": lnt,
    "Pinpoint": pinpoint,
    "PerfCompare": perfcompare,
}


def mann_whitney(base: Floats, candidate: Floats) -> Floats:
    """Return two-sided p-values, exact for few values."""
    return np.asarray(stats.mannwhitneyu(candidate, base, axis=1).pvalue, dtype=float)


def smaller_p(base: Floats, candidate: Floats) -> Floats:
    """Return the smaller p-value of the two tests, both by their limits for many values."""
    mann = stats.mannwhitneyu(candidate, base, axis=1, method="asymptotic").pvalue
    return np.asarray(np.minimum(mann, _kolmogorov(base, candidate)), dtype=float)


def _kolmogorov(base: Floats, candidate: Floats) -> Floats:
    both = np.hstack([base, candidate])
    order = np.argsort(both, axis=1)
    step = np.where(order < base.shape[1], 1 / base.shape[1], -1 / candidate.shape[1])
    distance = np.abs(np.cumsum(step, axis=1)).max(axis=1)
    size = np.sqrt(base.shape[1] * candidate.shape[1] / both.shape[1])
    return np.asarray(special.kolmogorov((size + 0.12 + 0.11 / size) * distance), dtype=float)


def our_stopping(base: Floats, candidate: Floats) -> tuple[Calls, Floats]:
    """Return calls and boots of a variant under `boots = "auto"`; two base boots a block."""
    boots = np.full(candidate.shape[0], float(LOOKS[-1]))
    called = np.zeros(candidate.shape[0], dtype=bool)
    for look in LOOKS:
        p = our_p_values(base[:, : 2 * look], candidate[:, :look], looks=True)
        now = (p <= level_at(look)) & ~called
        boots[now] = look
        called |= now
    return called, boots


def pinpoint_stopping(base: Floats, candidate: Floats) -> tuple[Calls, Floats]:
    """Return calls and boots of doubling: different at 1 %, same above a threshold, else twice as many."""
    going = np.ones(candidate.shape[0], dtype=bool)
    called, boots = np.zeros_like(going), np.zeros(going.size)
    for attempts in ATTEMPTS:
        boots[going] = attempts
        p = smaller_p(base[:, :attempts], candidate[:, :attempts])
        called |= going & (p <= DIFFERENT)
        going &= (p > DIFFERENT) & (p <= same_above(attempts))
    return called, boots


@lru_cache
def same_above(attempts: int, magnitude: float = 1.0, trials: int = 4000) -> float:
    """Return the p-value that 99 % of experiments with a shift of one interquartile range stay below.

    Pinpoint has a table of these, made in this way.
    """
    rng = np.random.default_rng(attempts)
    iqr = float(stats.norm.ppf(0.75) - stats.norm.ppf(0.25))
    drawn = rng.normal(size=(2, trials, attempts))
    return float(np.quantile(smaller_p(drawn[0], drawn[1] + magnitude * iqr), 0.99))
