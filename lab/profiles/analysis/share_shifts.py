# SPDX-License-Identifier: GPL-2.0-or-later
"""Test whether a share of samples moved between two sets of profiles, for many frames at once. A profile is one boot.

Shares are compared on the arcsine scale, absolute counts on that of square roots: there the variance of sampling is
the same whatever the share (Anscombe, Biometrika 35, 1948). Boots vary more than that; how much more comes from the
boots of all sides, a factor a frame (overdispersion.py). Then Student's t, and Benjamini and Hochberg over the frames that
hold enough samples to be tested at all.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from lab.profiles.analysis.overdispersion import Dispersion, moderate

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Scale = Literal["shares", "samples"]

# A frame is tested if it holds this many samples of both sides together, and this share of them.
LEAST_SAMPLES = 20
LEAST_SHARE = 0.0005
# With fewer degrees of freedom between boots nothing is certain: how boots vary is then a guess.
LEAST_FREEDOM = 3
# The largest q that counts as certain: of the frames called, at most 5 % are expected to be called wrongly; of pages on which
# nothing moved, at most 5 % call any.
CERTAIN = 0.05
# A page has the same samples as frames and as symbols, by shares and by absolute counts. Their errors are correlated, so the
# four count as two; measured by `make bench-profiles` on base against base.
FAMILIES = 2


@dataclass(frozen=True, eq=False)
class Sides:
    """The kernel of each profile. group: int64[profiles], the same number for boots of the same kernel."""

    group: Integers
    base: int
    candidate: int

    @property
    def freedom(self) -> int:
        """Degrees of freedom between boots: over all groups, their boots but one each."""
        return int(self.group.size - np.unique(self.group).size)


@dataclass(frozen=True, eq=False)
class Shifts:
    """Of each frame, float64[frames]: the candidate over the base.

    base, candidate: shares, or samples a boot. log_ratio: binary logarithm of their ratio; half a sample is added on each
    side, so that a frame of one side only has one. p, q: NaN where a frame was not tested.
    """

    base: Floats
    candidate: Floats
    log_ratio: Floats
    p: Floats
    q: Floats

    @property
    def certain(self) -> Flags:
        """Frames that moved, with at most 5 % expected to be called wrongly."""
        return np.asarray(self.q <= CERTAIN, dtype=bool)


def stabilised(counts: Integers, samples: Integers, scale: Scale) -> tuple[Floats, Floats]:
    """Values in which sampling alone has the variance 1 / 4w, and w: shapes (frames, profiles) and (profiles,)."""
    if scale == "samples":
        return np.asarray(np.sqrt(counts + 0.375), dtype=float), np.ones(len(samples))
    values = np.arcsin(np.sqrt((counts + 0.375) / (samples + 0.75)))
    return np.asarray(values, dtype=float), np.asarray(samples + 0.5, dtype=float)


def dispersion(counts: Integers, samples: Integers, group: Integers, scale: Scale) -> Dispersion:
    """Return how much more the frames vary between boots than by sampling. Needs a group of two boots or more."""
    values, weights = stabilised(counts, samples, scale)
    squares = np.zeros(len(counts))
    for kernel in np.unique(group):
        own = group == kernel
        mean = values[:, own] @ weights[own] / weights[own].sum()
        squares += 4 * ((values[:, own] - mean[:, None]) ** 2) @ weights[own]
    freedom = int(group.size - np.unique(group).size)
    return moderate(squares / freedom, freedom, counts.sum(axis=1) + 0.5)


def compare(counts: Integers, samples: Integers, sides: Sides, *, scale: Scale = "shares") -> Shifts:
    """Compare two groups; the others only tell how boots vary.

    counts: int64[frames, profiles]. samples: int64[profiles]. p and q are NaN for frames with too few samples, in them or
    beside them, and for all of them where LEAST_FREEDOM is not reached.
    """
    ours, theirs = sides.group == sides.candidate, sides.group == sides.base
    base, candidate = (level(counts, samples, own, scale) for own in (theirs, ours))
    p = np.full(len(counts), np.nan)
    tested = _tested(counts, samples, ours | theirs)
    if sides.freedom >= LEAST_FREEDOM and ours.any() and theirs.any() and tested.any():
        # The factor is estimated from the tested frames only: small ones would blur the typical one.
        p[tested] = _p_values(counts[tested], samples, sides, scale)
    half = [
        level(np.full((1, len(samples)), 0.5 / max(own.sum(), 1)), samples, own, scale)
        for own in (theirs, ours)
    ]
    with np.errstate(invalid="ignore", divide="ignore"):
        log_ratio = np.log2((candidate + half[1]) / (base + half[0]))
    return Shifts(base, candidate, np.nan_to_num(log_ratio, nan=0.0, posinf=0.0, neginf=0.0), p, adjusted(p))


def level(counts: Integers | Floats, samples: Integers, own: Flags, scale: Scale) -> Floats:
    """Return the share over all of a side's samples, or samples a boot; 0 where there are none."""
    over = float(samples[own].sum() if scale == "shares" else own.sum())
    return np.asarray(counts[:, own].sum(axis=1) / max(over, 1.0), dtype=float)


def _tested(counts: Integers, samples: Integers, own: Flags) -> Flags:
    inside, taken = counts[:, own].sum(axis=1), samples[own].sum()
    least = max(LEAST_SAMPLES, LEAST_SHARE * taken)
    # What a frame lacks must be as many as what it holds: the outermost frames hold all but a few.
    return np.asarray((inside >= least) & (taken - inside >= least), dtype=bool)


def _p_values(counts: Integers, samples: Integers, sides: Sides, scale: Scale) -> Floats:
    values, weights = stabilised(counts, samples, scale)
    means, inverse = [], 0.0
    for side in (sides.base, sides.candidate):
        own = sides.group == side
        means.append(values[:, own] @ weights[own] / weights[own].sum())
        inverse += 1 / weights[own].sum()
    spread = dispersion(counts, samples, sides.group, scale)
    t = np.abs(means[1] - means[0]) / np.sqrt(spread.factor * inverse / 4)
    return np.asarray(2 * scipy.stats.t.sf(t, spread.freedom), dtype=float)


def adjusted(p: Floats, families: int = FAMILIES) -> Floats:
    """Return q-values after Benjamini and Hochberg, for one of so many families on a page; NaN stays and does not count."""
    q = p.copy()
    known = np.isfinite(p)
    if known.any():
        q[known] = np.minimum(families * scipy.stats.false_discovery_control(p[known], method="bh"), 1.0)
    return q


@dataclass(frozen=True, eq=False)
class Interval:
    """A group's shares with their 95 % interval, float64[frames]; low and high are NaN where boots are too few."""

    share: Floats
    low: Floats
    high: Floats


def intervals(counts: Integers, samples: Integers, group: Integers, which: int) -> Interval:
    """Shares of one group over all its boots. Arguments as in `compare`."""
    own = group == which
    share = level(counts, samples, own, "shares")
    nothing = np.full(len(counts), np.nan)
    freedom = int(group.size - np.unique(group).size)
    if freedom < LEAST_FREEDOM or not samples[own].any():
        return Interval(share, nothing, nothing)
    # Frames of a few samples do not show how boots vary; their interval is that of sampling.
    factor, known = np.ones(len(counts)), np.full(len(counts), np.inf)
    large = counts.sum(axis=1) >= max(LEAST_SAMPLES, LEAST_SHARE * samples.sum())
    if large.any():
        spread = dispersion(counts[large], samples, group, "shares")
        factor[large], known[large] = spread.factor, spread.freedom
    values, weights = stabilised(counts[:, own], samples[own], "shares")
    middle = values @ weights / weights.sum()
    half = scipy.stats.t.ppf(0.975, known) * np.sqrt(factor / (4 * weights.sum()))
    low, high = (np.sin(np.clip(middle + side * half, 0, np.pi / 2)) ** 2 for side in (-1, 1))
    return Interval(share, np.minimum(low, share), np.maximum(high, share))
