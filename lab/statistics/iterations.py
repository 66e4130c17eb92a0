# SPDX-License-Identifier: GPL-2.0-or-later
"""Iterations within boots: test whether warm-up is over."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
import scipy
from numpy.typing import NDArray

Floats = NDArray[np.float64]
LEAST_BOOTS = 3
LEAST_ITERATIONS = 3
# Limit of a value, in medians of its boot.
FARTHEST = 1e9


@dataclass(frozen=True, slots=True)
class WarmupTrend:
    """Remaining warm-up. slope: relative change an iteration; total: over all iterations of a boot.

    more_warmups: how many further iterations to discard so that no trend is left, 0 if there is none;
    None if no number would do, because the boots drift to their end.
    """

    slope: float
    total: float
    p_value: float
    more_warmups: int | None


def trend_left(iterations_per_boot: Sequence[Sequence[float]], *, alpha: float = 0.05) -> WarmupTrend | None:
    """Check that the discarded warm-up was enough. Values without warm-up, in order of execution.

    Each boot gives one slope over the iteration's number, by least squares, relative to the boot's median; the
    slopes get Student's t test with boots - 1 degrees of freedom. Boots are the unit, so iterations that
    resemble their neighbours do no harm. None if there are fewer than 3 boots of 3 iterations, or one lasted a
    billion times its boot's median.
    """
    boots = _table(iterations_per_boot)
    if boots is None:
        return None
    slope, p_value = _slope_test(boots)
    total = slope * (boots.shape[1] - 1)
    if p_value > alpha:
        return WarmupTrend(slope, total, p_value, 0)
    for more in range(1, boots.shape[1] - LEAST_ITERATIONS + 1):
        if _slope_test(boots[:, more:])[1] > alpha:
            return WarmupTrend(slope, total, p_value, more)
    return WarmupTrend(slope, total, p_value, None)


def _table(iterations_per_boot: Sequence[Sequence[float]]) -> Floats | None:
    """Return boots × iterations relative to the boot's median, cut to the shortest usable boot."""
    usable = [values for values in iterations_per_boot if len(values) >= LEAST_ITERATIONS]
    if len(usable) < LEAST_BOOTS:
        return None
    shortest = min(len(values) for values in usable)
    boots = np.array([values[:shortest] for values in usable], dtype=float)
    medians = np.median(boots, axis=1, keepdims=True)
    if not np.all(np.isfinite(boots)) or not np.all(medians > 0):
        return None
    # A value beyond that is not just a slow iteration, and arithmetic with it overflows.
    if np.any(np.abs(boots) > FARTHEST * medians):
        return None
    return np.asarray(boots / medians, dtype=float)


def _slope_test(boots: Floats) -> tuple[float, float]:
    index = np.arange(boots.shape[1]) - (boots.shape[1] - 1) / 2
    slopes = np.round(boots @ index / (index @ index), 15)
    mean, spread = float(slopes.mean()), float(slopes.std(ddof=1))
    if spread == 0:
        return mean, 1.0 if mean == 0 else 0.0
    return mean, float(2 * scipy.stats.t.sf(abs(mean) / (spread / sqrt(slopes.size)), slopes.size - 1))
