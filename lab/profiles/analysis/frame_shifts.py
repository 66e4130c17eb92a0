# SPDX-License-Identifier: GPL-2.0-or-later
"""Find which frames of two kernels differ, how much and how certainly. Each profiled boot is one sample.

A chain of frames that hold the very same samples is one hypothesis: a page has many frames but few that could differ by
themselves, and Benjamini and Hochberg count those.
"""

from dataclasses import dataclass

import numpy as np

from lab.profiles.analysis.count_shifts import compare_counts
from lab.profiles.analysis.frame_alignment import Flags, Integers, UnitedTree
from lab.profiles.analysis.share_shifts import LEAST_FREEDOM, Scale, Shifts, Sides, compare
from lab.profiles.analysis.wait_shifts import compare_waits
from lab.profiles.analysis.weight_unit import Unit

_JUDGES = {
    "samples": compare,
    "ns": compare_waits,
    "instructions": compare_counts,
    "cycles": compare_waits,
}


@dataclass(frozen=True, eq=False)
class FrameShifts:
    """Shifts of all nodes of a united tree, on both scales; doubt: why nothing can be certain, or nothing.

    samples: of samples, or of nanoseconds or cycles waited, a boot.
    """

    shares: Shifts
    samples: Shifts
    doubt: str


def compare_frames(
    tree: UnitedTree,
    sides: Sides,
    *,
    scale: Scale = "shares",
    unit: Unit = "samples",
    whole: Integers | None = None,
) -> Shifts:
    """Compare the samples in each node or below: float64[nodes]. Profiles of other variants help to estimate how boots vary.

    unit: of the tree's weights. whole: int64[profiles], what shares are of; all the tree holds if None.
    """
    heads, member = _chains(tree)
    judge = _JUDGES[unit]
    shifts = judge(tree.total[heads], tree.samples if whole is None else whole, sides, scale=scale)
    return Shifts(
        *(values[member] for values in (shifts.base, shifts.candidate, shifts.log_ratio, shifts.p, shifts.q))
    )


def compare_profiles(
    tree: UnitedTree, sides: Sides, *, unit: Unit = "samples", whole: Integers | None = None
) -> FrameShifts:
    """Compare frames by shares and by absolute samples a boot."""
    return FrameShifts(
        compare_frames(tree, sides, unit=unit, whole=whole),
        compare_frames(tree, sides, scale="samples", unit=unit, whole=whole),
        doubt(tree, sides, unit=unit),
    )


def _chains(tree: UnitedTree) -> tuple[Integers, Integers]:
    """First nodes of chains whose frames hold the same samples; and for each node the place of its chain's first."""
    above = np.maximum(tree.parent, 0)
    # In preorder an only child follows its parent.
    same = (tree.parent == np.arange(len(tree)) - 1) & (tree.total == tree.total[above]).all(axis=1)
    same[0] = False
    return np.flatnonzero(~same), np.cumsum(~same) - 1


def doubt(tree: UnitedTree, sides: Sides, *, unit: Unit = "samples") -> str:
    """Return why no difference can be significant, as a sentence; empty if one can."""
    ours, theirs = sides.group == sides.candidate, sides.group == sides.base
    for own, name in ((theirs, "base"), (ours, "variant")):
        if not own.any():
            return f"The {name} has no profile."
        if unit == "samples" and not tree.samples[own].any():
            return f"The {name}'s profile holds no sample of a busy CPU."
    # If nothing waits there is no symbol, which is a valid result.
    waited = tree.samples[ours].any() and tree.samples[theirs].any()
    if (waited or unit == "samples") and not (_held(tree, ours) & _held(tree, theirs)).any():
        return (
            "The two profiles have no symbol in common: one of them was read with another kernel's symbols."
        )
    if unit != "instructions" and sides.freedom < LEAST_FREEDOM:
        wanted = "boots = 3" if unit == "cycles" else "profile_boots = 2"
        return (
            "With so few profiled boots nothing tells whether kernels differ or boots do; "
            f"ask for {wanted} or more."
        )
    return ""


def _held(tree: UnitedTree, own: Flags) -> Flags:
    """bool[names]: which names a side holds anywhere but at the root."""
    held = np.zeros(len(tree.names), dtype=bool)
    held[tree.name[1:][tree.total[1:, own].any(axis=1)]] = True
    return held


def sides_of(owners: Integers, *, base: int, candidate: int, twin: int | None = None) -> Sides:
    """Return sides by variant: the base's twin counts as the base, unless the twin is the candidate.

    owners: int64[profiles], the variant each profile is of. twin: the base's A/A variant.
    """
    group = owners if twin is None or twin == candidate else np.where(owners == twin, base, owners)
    return Sides(group, base, candidate)
