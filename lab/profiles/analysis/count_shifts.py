# SPDX-License-Identifier: GPL-2.0-or-later
"""Tell what a patch changed of exact counts from what changes between boots of one kernel for no reason.

Boots that repeat agree to the last instruction, so boots of one kernel are shifted on purpose (RunOrder.shift): what differs
between them is where timer ticks fall and how full the slab caches are, and kernels of another layout differ by the same.
A count has changed if the two sides' boots lie apart by more than NOISE times what either side's lie apart among themselves.
docs/design/microscope.md has what that leaves of 49 functions that differ on debian-6.1.
"""

from __future__ import annotations

import numpy as np

from lab.profiles.analysis.frame_alignment import Flags, Integers
from lab.profiles.analysis.share_shifts import Floats, Interval, Scale, Shifts, Sides

NOISE = 10


def changed(base: Integers, candidate: Integers) -> Flags:
    """bool[rows]: which counts differ for more than chance. base, candidate: int64[rows, boots], at least one boot each."""
    below = candidate.min(axis=1) - base.max(axis=1)
    above = base.min(axis=1) - candidate.max(axis=1)
    gap = np.maximum(np.maximum(below, above), 0)
    spread = np.maximum(np.ptp(base, axis=1), np.ptp(candidate, axis=1))
    return np.asarray((gap > 0) & (gap > NOISE * spread), dtype=bool)


def compare_counts(counts: Integers, whole: Integers, sides: Sides, *, scale: Scale = "samples") -> Shifts:
    """As share_shifts.compare, of instructions a boot: q is 0 where the count changed, else 1.

    counts: int64[rows, boots]. whole: int64[boots], what shares are of.
    """
    ours, theirs = sides.group == sides.candidate, sides.group == sides.base
    base, candidate = counts[:, theirs], counts[:, ours]
    rows = len(counts)
    if not ours.any() or not theirs.any():
        nothing = np.full(rows, np.nan)
        return Shifts(*(nothing.copy() for _ in range(5)))
    q = np.where(changed(base, candidate), 0.0, 1.0)
    # The first boots are those that do what measured ones do.
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
