# SPDX-License-Identifier: GPL-2.0-or-later
"""Shift of one metric between paired boots, with an interval. Numbers in, numbers out.

A boot is the unit of replication: iterations within it share its memory layout and its luck, so
each boot counts as one number, the median of its iterations. Boots are compared in pairs of the
same block, which ran close in time; their log ratios have the median as centre.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy import stats

LEVEL = 0.95
RESAMPLES = 9999
# Below this the range of all pairs covers the median less than 93 % of the time, whatever the data.
LEAST_BOOTS = 5
METHOD = "median of log ratios of paired boots; expanded percentile bootstrap, 95 %"


@dataclass(frozen=True, slots=True)
class Shift:
    """Candidate over base, as ratios: 1.02 is +2 %.

    boots: pairs. ratio, low, high are None where there is none: `why` says so in words.
    """

    boots: int
    base_median: float | None
    median: float | None
    ratio: float | None
    low: float | None
    high: float | None
    why: str = ""


def boot_median(values: Sequence[float]) -> float:
    """Return the one number a boot counts as. values: its iterations without warm-up, at least one."""
    return float(np.median(np.asarray(values, dtype=float)))


def compare_boots(base: Sequence[float], candidate: Sequence[float], *, seed: int = 1) -> Shift:
    """Return the shift between paired boots; base[i] and candidate[i] come from one block.

    Values are boot medians >= 0 in the metric's unit. Two zeros are equal (ratio 1); a zero on one
    side only has no ratio, and then the metric has no shift: leaving the pair out would favour one side.
    Raises ValueError for lists of different length or values that are negative or not finite.
    """
    left, right = _checked(base, candidate)
    if not left.size:
        return Shift(0, None, None, None, None, None, "no boot of both sides in one block")
    medians = float(np.median(left)), float(np.median(right))
    one_sided = int(np.count_nonzero((left == 0) != (right == 0)))
    if one_sided:
        why = f"0 on one side only in {one_sided} of {left.size} pairs: there is no ratio"
        return Shift(left.size, *medians, None, None, None, why)
    both = (left == 0) & (right == 0)
    logs = np.log(np.where(both, 1.0, right)) - np.log(np.where(both, 1.0, left))
    ratio = exp(float(np.median(logs)))
    if left.size < LEAST_BOOTS:
        return Shift(left.size, *medians, ratio, None, None, f"{left.size} of {LEAST_BOOTS} boots")
    low, high = median_interval(logs, seed=seed)
    return Shift(left.size, *medians, ratio, exp(low), exp(high))


def median_interval(values: NDArray[np.float64], *, seed: int) -> tuple[float, float]:
    """Return a 95 % interval for the median of a few values, shape (n,), n >= LEAST_BOOTS.

    The plain percentile bootstrap is too narrow for small n (7 values: 12 % false alarms in simulation,
    not 5). Expanding its tails by Student's t and sqrt(n/(n-1)) mends that: 1.5 to 5 % for 6 to 20 values on
    normal, heavy-tailed, skewed and bimodal differences. With 5 values it is their range, which
    covers the median 93.75 % of the time for any distribution; no distribution-free interval does better.
    Source: Hesterberg, What Teachers Should Know About the Bootstrap, Am. Stat. 69(4), 2015, §5.
    """
    if np.ptp(values) == 0:
        return float(values[0]), float(values[0])
    answer = stats.bootstrap(
        (values,),
        np.median,
        n_resamples=RESAMPLES,
        confidence_level=1 - 2 * expanded_tail(values.size),
        method="percentile",
        rng=np.random.default_rng(seed),
    )
    return float(answer.confidence_interval.low), float(answer.confidence_interval.high)


def expanded_tail(n: int, level: float = LEVEL) -> float:
    """Return the probability below each end of the expanded percentile interval of n values."""
    quantile = float(stats.t.ppf((1 + level) / 2, n - 1))
    return float(stats.norm.cdf(-sqrt(n / (n - 1)) * quantile))


def half_width(shift: Shift) -> float:
    """Return half the interval in log ratio. Raises ValueError when there is none."""
    if shift.low is None or shift.high is None:
        raise ValueError("this shift has no interval")
    return (log(shift.high) - log(shift.low)) / 2


def _checked(
    base: Sequence[float], candidate: Sequence[float]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    left, right = np.asarray(base, dtype=float), np.asarray(candidate, dtype=float)
    if left.shape != right.shape or left.ndim != 1:
        raise ValueError(f"paired boots differ in number: {left.size} and {right.size}")
    both = np.concatenate([left, right])
    if not np.all(np.isfinite(both)) or np.any(both < 0):
        raise ValueError("boot medians must be finite and not negative")
    return left, right
