# SPDX-License-Identifier: GPL-2.0-or-later
"""Estimate how much more counts vary between boots than by sampling alone: one factor a frame, few boots each.

A variance from two to five boots is a poor estimate, and a page tests a thousand frames: the few whose boots happen to agree
would look certain. So each frame's own factor is drawn towards that of frames of its size, as far as the frames
themselves prove to be alike. Source: Smyth, Stat. Appl. Genet. Mol. Biol. 3(1), 2004 (moderated variances, equations
of section 6.2); the trend over size: Lund et al., same journal 11(5), 2012.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy
from numpy.typing import NDArray

Floats = NDArray[np.float64]
# Fewer frames than this say nothing about how alike they are; fewer than the second, nothing about size.
LEAST_FRAMES, LEAST_FOR_TREND = 3, 30
# Factors below this share of the typical one come from the coarseness of counts.
COARSE = 1e-2
# Where the tail of the factors is looked at, and how many degrees of freedom a prior may have.
TAIL = np.array([0.75, 0.9, 0.95, 0.98])
PRIORS = (1000.0, 60.0, 30.0, 20.0, 14.0, 10.0, 7.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.5)


@dataclass(frozen=True, eq=False)
class Dispersion:
    """factor: float64[frames], variance between boots over that of sampling, at least the floor. freedom: of its estimate."""

    factor: Floats
    freedom: Floats


def moderate(raw: Floats, freedom: int, size: Floats, *, floor: float = 1.0) -> Dispersion:
    """Draw each frame's own factor towards that of frames of its size.

    raw: float64[frames], mean square of the residuals over the variance of sampling. freedom: degrees of freedom it has,
    at least 1. size: float64[frames], positive: samples in the frame. floor: a factor below it is luck, and is raised to it; 1
    for counts of samples, 0 for values without sampling noise.
    """
    if len(raw) < LEAST_FRAMES:
        return Dispersion(np.maximum(raw, floor), np.full(len(raw), float(freedom)))
    typical = float(np.median(raw))
    logs = np.log(np.maximum(raw, max(COARSE * typical, COARSE)))
    trend = _trend(logs, np.log(size))
    prior = _prior_freedom(logs - trend, freedom)
    # The trend runs through medians of F with (freedom, prior) degrees; over that median it is what frames scatter around.
    centre = np.exp(trend) / float(scipy.stats.f.median(freedom, prior))
    factor = (prior * centre + freedom * raw) / (prior + freedom)
    return Dispersion(np.maximum(factor, floor), np.full(len(raw), prior + freedom))


def _trend(logs: Floats, size: Floats) -> Floats:
    """The typical logarithm as a curve of size, a parabola at most, whose residuals have the median 0."""
    degree = 2 if len(logs) >= LEAST_FOR_TREND and np.ptp(size) > 1 else 0
    basis = np.vander((size - size.mean()) / max(float(np.ptp(size)), 1e-9), degree + 1)
    fitted = basis @ np.linalg.lstsq(basis, logs, rcond=None)[0]
    return np.asarray(fitted + np.median(logs - fitted), dtype=float)


def _prior_freedom(residual: Floats, freedom: int) -> float:
    """Return the degrees of freedom that the typical factor is worth: the most with which large factors are to be expected.

    If all frames had one factor, the ratios of their estimates to it would be chi-squares over their freedom; the more
    frames differ, the heavier the upper tail. Smyth uses the variance of logarithms, but that depends mostly on the lower
    tail, which is only the coarseness of counts.
    """
    seen = np.exp(np.quantile(residual, TAIL))
    for prior in PRIORS:
        if (seen <= _expected_tail(freedom, prior)).all():
            return prior
    return PRIORS[-1]


@cache
def _expected_tail(freedom: int, prior: float) -> Floats:
    """Quantiles TAIL of F with these degrees of freedom, over its median. Every page asks for the same few."""
    expected = scipy.stats.f.ppf(TAIL, freedom, prior) / scipy.stats.f.median(freedom, prior)
    return np.asarray(expected, dtype=float)
