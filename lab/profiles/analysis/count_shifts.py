# SPDX-License-Identifier: GPL-2.0-or-later
"""Distinguish a patch's changes of exact counts from changes between boots of one kernel for no reason.

Boots that repeat agree to the last instruction, so boots of one kernel are shifted on purpose (RunOrder.shift): what differs
between them is where timer ticks fall and how full the slab caches are, and kernels of another layout differ by the same.
A count has changed if the gap between the two sides' boots is more than a factor times the larger range within a side. The
factor follows from the base's own boots, those of its twin included: docs/design/microscope.md.
"""

from itertools import combinations

import numpy as np

from lab.profiles.analysis.frame_alignment import Flags, Integers
from lab.profiles.analysis.share_shifts import Floats, Interval, Scale, Shifts, Sides

NOISE = 10.0
"""The factor where the base has fewer than four boots: as it was measured on one pair of kernels (docs/design/microscope.md)."""
_LEAST_NOISE = 3.0
# The halves of one kernel's boots are few samples of the difference that two kernels may have for no reason.
_SAFETY = 2.0
_FEWEST_BOOTS, _MOST_BOOTS = 4, 6


def noise_of(control: Integers) -> float:
    """Return how many times the range within a half the gap between two halves of one kernel's boots may be.

    control: int64[rows, boots], of one kernel. It is twice the largest factor of any row and any two halves of the first six
    boots, and 3 or more; NOISE with fewer than four boots.
    """
    boots = min(control.shape[1], _MOST_BOOTS)
    if boots < _FEWEST_BOOTS:
        return NOISE
    largest = 0.0
    for half in combinations(range(boots), boots // 2):
        rest = [boot for boot in range(boots) if boot not in half]
        gap, spread = _apart(control[:, list(half)], control[:, rest])
        # Rows with no range within either half are left out: any gap is infinitely many times that.
        largest = max(largest, float((gap / np.maximum(spread, 1))[spread > 0].max(initial=0.0)))
    return max(_LEAST_NOISE, _SAFETY * largest)


def changed(base: Integers, candidate: Integers) -> Flags:
    """bool[rows]: which counts differ for more than chance. base, candidate: int64[rows, boots], at least one boot each."""
    gap, spread = _apart(base, candidate)
    return np.asarray((gap > 0) & (gap > noise_of(base) * spread), dtype=bool)


def _apart(side: Integers, other: Integers) -> tuple[Integers, Integers]:
    """Return by row the gap between two sides' boots, and the larger range within a side: int64[rows] each."""
    gap = np.maximum(other.min(axis=1) - side.max(axis=1), side.min(axis=1) - other.max(axis=1))
    return np.maximum(gap, 0), np.maximum(np.ptp(side, axis=1), np.ptp(other, axis=1))


def compare_counts(counts: Integers, whole: Integers, sides: Sides, *, scale: Scale = "samples") -> Shifts:
    """Compare instructions a boot like share_shifts.compare: q is 0 where the count changed, else 1.

    counts: int64[rows, boots]. whole: int64[boots], what shares are of.
    """
    ours, theirs = sides.group == sides.candidate, sides.group == sides.base
    base, candidate = counts[:, theirs], counts[:, ours]
    rows = len(counts)
    if not ours.any() or not theirs.any():
        nothing = np.full(rows, np.nan)
        return Shifts(*(nothing.copy() for _ in range(5)))
    q = np.where(changed(base, candidate), 0.0, 1.0)
    # The first boot of each side repeats the measured ones.
    levels = [side[:, 0].astype(float) for side in (base, candidate)]
    half = [0.5, 0.5]
    if scale == "shares":
        half = [0.5 / max(float(whole[own][0]), 1.0) for own in (theirs, ours)]
        levels = [
            level / max(float(whole[own][0]), 1.0) for level, own in zip(levels, (theirs, ours), strict=True)
        ]
    ratio = np.log2((levels[1] + half[1]) / (levels[0] + half[0]))
    return Shifts(levels[0], levels[1], ratio, q, q)


def count_levels(counts: Integers, owners: Integers, variant: int) -> Interval:
    """Return instructions of a variant's first boot, without an interval: it is what every boot would count."""
    own = counts[:, owners == variant]
    level: Floats = own[:, 0].astype(float) if own.shape[1] else np.full(len(counts), np.nan)
    nothing = np.full(len(counts), np.nan)
    return Interval(level, nothing, nothing)
