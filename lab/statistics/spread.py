# SPDX-License-Identifier: GPL-2.0-or-later
"""Test whether the candidate's boots vary more, or less, among themselves than the base's.

A patch may make a machine noisier and shift nothing. The measure is Levene's, on differences within blocks so that drift
has no part in it: how far the candidate lies from the mean of its block's two base boots, less the median of that,
over how far those two lie from each other. Chance is what the same measure gives when any of a block's three boots
is taken for the candidate: boots run in random order, so this is exact for noise of any shape whose spread is equal.

Source: Levene 1960; Brown & Forsythe, J. Am. Stat. Assoc. 69, 1974 (medians); the orders of a randomised block are those
of Box, Hunter & Hunter (block_model.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import exp, sqrt

import numpy as np
import scipy

from lab.statistics.arms import MOST_LOG, Arm, boot_number
from lab.statistics.block_model import Floats, Ints

# With fewer blocks no order is rare enough.
LEAST_BLOCKS = 5
# A change of spread is reported at this q-value, as a shift is.
CERTAIN = 0.05
# All orders of up to 8 blocks are tried; of more, a fixed random part.
ALL_ORDERS, SOME_ORDERS, SEED = 8, 4000, 20261122
ARMS = 3


@dataclass(frozen=True, slots=True)
class SpreadRatio:
    """Spread of the candidate's boots over that of the base's: a ratio of standard deviations with 95 % interval."""

    ratio: float
    low: float
    high: float
    p_value: float


def compare_spread(base: Sequence[Arm], candidate: Arm) -> SpreadRatio | None:
    """Return how much more a candidate's boots differ than the base's; None where that cannot be known.

    base: two arms, the base and its twin. It takes 5 blocks that hold a boot of all three, and numbers above 0, since
    logs are compared.
    """
    if len(base) != ARMS - 1:
        return None
    arms = [*base, candidate]
    shared = sorted(set.intersection(*({b for b, values in arm.boots.items() if values} for arm in arms)))
    if len(shared) < LEAST_BLOCKS:
        return None
    values = np.array([[boot_number(arm.boots[block]) for arm in arms] for block in shared])
    if not np.all(np.isfinite(values) & (values > 0)):
        return None
    logs = np.log(values)
    apart, between = _parts(logs[None], _orders(1, len(shared))[:1])
    if not np.any(between) or not np.any(apart):
        return None  # boots that agree exactly have no spread to compare
    p_value = float(spread_p_values(logs[None])[0])
    return _interval(apart[0, 0], between[0, 0], p_value)


def spread_p_values(logs: Floats) -> Floats:
    """Return the p-values of equal spread. logs: shape (experiments, blocks, 3): base, twin, candidate."""
    blocks = logs.shape[1]
    shifts = np.median(logs[:, :, 2] - logs[:, :, :2].mean(axis=2), axis=1)
    level = logs - shifts[:, None, None] * (np.arange(ARMS) == ARMS - 1)
    apart, between = _parts(level, _orders(ARMS, blocks))
    with np.errstate(divide="ignore", invalid="ignore"):
        measure = np.log(apart.mean(axis=2)) - np.log(between.mean(axis=2))
    measure = np.round(np.nan_to_num(measure, nan=0.0, posinf=MOST_LOG, neginf=-MOST_LOG), 9)
    own = measure[:, :1]
    rarer = np.minimum((measure >= own).mean(axis=1), (measure <= own).mean(axis=1))
    return np.asarray(np.minimum(1.0, 2 * rarer), dtype=float)


def _orders(arms: int, blocks: int) -> Ints:
    """Return which boot of each block is taken for the candidate, shape (orders, blocks): the true order first."""
    last = ARMS - 1
    if arms == 1:
        return np.full((1, blocks), last, dtype=np.intp)
    if blocks <= ALL_ORDERS:
        return np.array(list(product(range(last, -1, -1), repeat=blocks)), dtype=np.intp)
    drawn = np.random.default_rng(SEED).integers(ARMS, size=(SOME_ORDERS, blocks))
    drawn[0] = last
    return np.asarray(drawn, dtype=np.intp)


def _parts(logs: Floats, orders: Ints) -> tuple[Floats, Floats]:
    """Return how far off the boots taken for the candidate are, and how far apart the other two: (experiments, orders, blocks)."""
    places = np.arange(orders.shape[1])
    others = np.array([[1, 2], [0, 2], [0, 1]])
    pairs = logs[:, :, others]  # (experiments, blocks, taken, 2)
    off = logs - pairs.mean(axis=3)
    gaps = np.abs(pairs[..., 0] - pairs[..., 1])
    taken = off[:, places[None, :], orders]
    return np.abs(taken - np.median(taken, axis=2, keepdims=True)), gaps[:, places[None, :], orders]


def _interval(apart: Floats, between: Floats, p_value: float) -> SpreadRatio | None:
    """Return the ratio of standard deviations with its interval from the blocks' parts.

    If a boot of the base has variance 1 and the candidate's v, `apart` comes from v + 1/2 and `between` from 2.
    """
    blocks = apart.size
    middle = apart.mean() * sqrt(blocks / (blocks - 1)) / between.mean() if between.mean() else 0.0
    if not middle:
        return None
    each = apart / apart.mean() - between / between.mean()
    half = float(scipy.stats.t.ppf(0.975, blocks - 1)) * float(each.std(ddof=1)) / sqrt(blocks)
    low, ratio, high = (_of_boots(middle * exp(min(side * half, MOST_LOG))) for side in (-1, 0, 1))
    return SpreadRatio(ratio, low, high, p_value)


def _of_boots(measure: float) -> float:
    return sqrt(max(2 * measure * measure - 0.5, 0.0))


def spread_note(metric: str, variant: str, spread: SpreadRatio, q_value: float | None) -> str:
    """Return the line on a change of spread that is certain, else nothing. q_value: from adjust(), None without one."""
    certain = (spread.p_value if q_value is None else q_value) <= CERTAIN
    if not certain or spread.low <= 1 <= spread.high:
        return ""
    times = f"{spread.ratio:.2g} times as much as the base's ({spread.low:.2g} to {spread.high:.2g})"
    return f"{metric}: boots of {variant} differ {times}"
