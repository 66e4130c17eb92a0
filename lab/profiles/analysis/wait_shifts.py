# SPDX-License-Identifier: GPL-2.0-or-later
"""Test whether waits moved between two sets of profiles whose weights are nanoseconds, for many frames at once.

Nanoseconds are not counts: one long wait is a million of them, and sampling noise says nothing about the next boot. So
each boot is one number, every boot counts alike, and only the differences between boots of one kernel show what chance is. Numbers
are roots of time, or arcsines of the root of a share: a sum of waits varies there by about the same whatever its size, and a
frame in which a boot never waited is not a special case.

A variance of so few boots is a poor estimate. The frame's own is drawn towards that of frames of its size (overdispersion.py),
but never lowered: the one frame of a hundred whose boots happen to agree must not look certain, nor the one whose waits
have longer tails than the others'.
"""

import numpy as np
import scipy

from lab.profiles.analysis.overdispersion import moderate
from lab.profiles.analysis.share_shifts import (
    LEAST_FREEDOM,
    LEAST_SHARE,
    Flags,
    Floats,
    Integers,
    Interval,
    Scale,
    Shifts,
    Sides,
    adjusted,
    level,
)

# A frame is tested if this many boots, of both sides together, wait in it: waits in fewer boots are chance, however long.
LEAST_BOOTS = 3
# Added to both sides of a ratio, as a share of all waiting, so that a frame of only one side has a ratio.
TRACE = 1e-6


def compare_waits(times: Integers, whole: Integers, sides: Sides, *, scale: Scale = "samples") -> Shifts:
    """Compare two groups of boots; the others only tell how boots vary.

    times: int64[frames, boots], ns. whole: int64[boots], all waiting of a boot, ns. scale: "samples" is time waited a boot,
    "shares" its share of all waiting. Returns what share_shifts.compare does, with levels in ns a boot, or shares.
    """
    ours, theirs = sides.group == sides.candidate, sides.group == sides.base
    base, candidate = (level(times, whole, own, scale) for own in (theirs, ours))
    p = np.full(len(times), np.nan)
    tested = _tested(times, whole, ours | theirs, scale)
    if sides.freedom >= LEAST_FREEDOM and ours.any() and theirs.any() and tested.any():
        p[tested] = _p_values(times[tested], whole, sides, scale)
    trace = TRACE * (float(whole.mean()) if scale == "samples" and whole.size else 1.0) or 1.0
    log_ratio = np.log2((candidate + trace) / (base + trace))
    return Shifts(base, candidate, np.asarray(log_ratio, dtype=float), p, adjusted(p))


def wait_intervals(times: Integers, group: Integers, which: int) -> Interval:
    """Time waited a boot by one group, ns, with its 95 % interval between boots: `share` of the answer is that time."""
    own = group == which
    waited = level(times, times, own, "samples")
    nothing = np.full(len(times), np.nan)
    freedom = int(group.size - np.unique(group).size)
    if freedom < LEAST_FREEDOM or not own.any():
        return Interval(waited, nothing, nothing)
    values = np.sqrt(times)
    variance, known = _variance(values, times, group, freedom)
    middle = values[:, own].mean(axis=1)
    half = scipy.stats.t.ppf(0.975, known) * np.sqrt(variance / own.sum())
    # The mean of squares is the square of the mean plus the variance.
    low, high = np.maximum(middle - half, 0.0) ** 2, (middle + half) ** 2 + variance
    return Interval(waited, np.minimum(low, waited), np.maximum(high, waited))


def _values(times: Integers, whole: Integers, scale: Scale) -> Floats:
    """Return the compared values, in roots of nanoseconds on either scale: float64[frames, boots]."""
    if scale == "samples":
        return np.asarray(np.sqrt(times), dtype=float)
    shares = np.clip(times / np.maximum(whole, 1), 0.0, 1.0)
    return np.asarray(np.arcsin(np.sqrt(shares)) * np.sqrt(max(float(whole.mean()), 1.0)), dtype=float)


def _tested(times: Integers, whole: Integers, own: Flags, scale: Scale) -> Flags:
    inside, taken = times[:, own].sum(axis=1), float(whole[own].sum())
    held = (times[:, own] > 0).sum(axis=1) >= LEAST_BOOTS
    kept = held & (inside >= LEAST_SHARE * taken)
    if scale == "shares":
        kept &= taken - inside >= LEAST_SHARE * taken
    return np.asarray(kept, dtype=bool)


def _between(values: Floats, group: Integers, freedom: int) -> Floats:
    """Variance between boots of one kernel, over all kernels: float64[frames]."""
    squares = np.zeros(len(values))
    for kernel in np.unique(group):
        own = values[:, group == kernel]
        squares += ((own - own.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    return squares / freedom


def _variance(values: Floats, times: Integers, group: Integers, freedom: int) -> tuple[Floats, Floats]:
    """Variance of one boot's value, and its degrees of freedom: float64[frames] each."""
    own = _between(values, group, freedom)
    drawn = moderate(own, freedom, times.sum(axis=1) + 1.0, floor=0.0)
    return np.maximum(drawn.factor, own), drawn.freedom


def _p_values(times: Integers, whole: Integers, sides: Sides, scale: Scale) -> Floats:
    values = _values(times, whole, scale)
    ours, theirs = sides.group == sides.candidate, sides.group == sides.base
    apart = np.abs(values[:, ours].mean(axis=1) - values[:, theirs].mean(axis=1))
    unit = 1 / ours.sum() + 1 / theirs.sum()
    variance, freedom = _variance(values, times, sides.group, sides.freedom)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(apart == 0, 0.0, apart / np.sqrt(variance * unit))
    return np.asarray(2 * scipy.stats.t.sf(t, freedom), dtype=float)
