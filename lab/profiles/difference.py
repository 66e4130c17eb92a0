# SPDX-License-Identifier: GPL-2.0-or-later
"""Two variants' profiles aligned, frame by frame."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lab.errors import UnknownRow
from lab.models.states import Role
from lab.profiles.analysis.caller_text import call_text
from lab.profiles.analysis.caller_tree import callee_tree, caller_tree
from lab.profiles.analysis.frame_alignment import Flags, Integers, UnitedTree, summed
from lab.profiles.analysis.frame_shifts import FrameShifts, compare_profiles, doubt
from lab.profiles.analysis.frame_tree import FrameTree
from lab.profiles.analysis.weight_unit import Unit, amount_name, unit_name, unit_of
from lab.profiles.case_profiles import CPU, CaseProfiles, ProfiledVariant, case_profiles, watched

# In place of a symbol: all symbols.
ALL = "*"


@dataclass(frozen=True, slots=True)
class SeenFrom:
    """The symbol from which to see a tree: one half of its sandwich, or the whole tree from its roots if both are empty.

    callers: show the callers of this symbol below it, ALL for every symbol. callees: show what this symbol calls.
    """

    callers: str = ""
    callees: str = ""


WHOLE = SeenFrom()


@dataclass(frozen=True, eq=False)
class DrawnTree:
    """A tree and the other content of its files: its title, the unit of its weights, where its functions begin."""

    tree: FrameTree
    context: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Difference:
    """The difference of two sides in each frame of `tree`. base_boots, boots: bool[profiles], columns of the sides.

    kind: of Profile.Kind; samples are in its unit. whole: int64[profiles], the totals of which shares are taken.
    """

    title: str
    kind: str
    base: ProfiledVariant
    variant: ProfiledVariant
    tree: UnitedTree
    base_boots: Flags
    boots: Flags
    shifts: FrameShifts
    whole: Integers

    @property
    def unit(self) -> Unit:
        """Return the unit of samples."""
        return unit_of(self.kind)

    @property
    def sides(self) -> tuple[FrameTree, FrameTree]:
        """Samples of busy CPUs added up, of the base and of the variant."""
        return summed(self.tree, self.base_boots, idle=False), summed(self.tree, self.boots, idle=False)


def difference(
    experiment_id: int,
    case_id: int,
    *,
    base: str,
    variant: str,
    idle: bool = False,
    kind: str = "",
    seen: SeenFrom = WHOLE,
) -> Difference:
    """Compare two variants of a case, by their names, in one kind of profiles. Raises UnknownRow.

    base: the experiment's own if empty; it includes the boots of its twin, unless the twin is the variant.
    idle: count idle CPUs' samples like others. seen: from which symbol.
    """
    profiles = case_profiles(experiment_id, case_id, idle=idle, kind=kind)
    whole = profiles.tree
    tree, view = _seen(whole, seen)
    old = profiles.place(base or _base_name(profiles))
    new = profiles.place(variant)
    sides = profiles.sides(base=old, candidate=new)
    ours, theirs = (np.asarray(sides.group == place, dtype=bool) for place in (new, old))
    sided = profiles.variants[old], profiles.variants[new]
    return Difference(
        title=f"{profiles.case}: {sided[1].name} against {sided[0].name}{_of_kind(profiles)}{view}",
        kind=profiles.kind,
        base=sided[0],
        variant=sided[1],
        tree=tree,
        base_boots=profiles.drawn(theirs),
        boots=profiles.drawn(ours),
        # Judged on the whole tree: a symbol that one side lacks is a difference.
        shifts=replace(
            compare_profiles(tree, sides, unit=profiles.unit, whole=whole.samples),
            doubt=doubt(whole, sides, unit=profiles.unit),
        ),
        whole=whole.samples,
    )


def variant_tree(
    experiment_id: int,
    case_id: int,
    *,
    variant: str,
    idle: bool = False,
    kind: str = "",
    seen: SeenFrom = WHOLE,
) -> DrawnTree:
    """Return the sum of all counted boots of a variant, the base if empty, under the names of the source.

    seen: from which symbol. Raises UnknownRow.
    """
    profiles = case_profiles(experiment_id, case_id, kind=kind, idle=idle and seen != WHOLE)
    place = profiles.place(variant or _base_name(profiles))
    tree, view = _seen(profiles.tree, seen)
    title = f"{profiles.case}: {profiles.variants[place].name}{_of_kind(profiles)}{view}"
    drawn = summed(tree, profiles.drawn(profiles.of(place)), idle=idle)
    return DrawnTree(drawn, {"title": title, "unit": profiles.unit, "lines": profiles.lines})


def _seen(tree: UnitedTree, seen: SeenFrom) -> tuple[UnitedTree, str]:
    """Return a tree as it is seen from a symbol, and that view in words for a title. Raises UnknownRow."""
    if seen.callers and seen.callees:
        raise UnknownRow("callers and callees are two trees: request one at a time")
    if seen.callers:
        return caller_tree(tree, "" if seen.callers == ALL else seen.callers), f", callers of {seen.callers}"
    if seen.callees:
        return callee_tree(tree, seen.callees), f", what {seen.callees} calls"
    return tree, ""


def caller_text(
    experiment_id: int, case_id: int, *, variant: str, symbols: tuple[str, ...], kind: str = ""
) -> str:
    """Return the callers of some symbols, a tree of text each, over all counted boots of a variant or of each.

    symbols: what the workload watches if empty. Raises UnknownRow.
    """
    profiles = case_profiles(experiment_id, case_id, kind=kind)
    asked = symbols or watched(profiles)
    places = [profiles.place(variant)] if variant else range(len(profiles.variants))
    parts = []
    for place in places:
        profiled, own = profiles.variants[place], profiles.drawn(profiles.of(place))
        count = f"{len(profiled.boots)} boot{'s' if len(profiled.boots) > 1 else ''}"
        taken = int(profiles.tree.samples[own].sum())
        amount = f"{taken:,} samples of busy CPUs"
        if profiles.unit == "cycles":
            amount = f"{amount_name(taken, profiles.unit)} waited"
        elif profiles.kind != CPU:
            amount = f"{unit_name(taken, profiles.unit)}{' waited' if profiles.waits else ''}"
        parts.append(f"# {profiles.case}: {profiled.name}{_of_kind(profiles)}, {count}, {amount}\n\n")
        trees = [call_text(profiles.tree, own, symbol) for symbol in asked]
        parts += [f"{text}\n" for text in trees if text] or ["# less than 0.5 % each\n\n"]
    return "".join(parts)


def _of_kind(profiles: CaseProfiles) -> str:
    return "" if profiles.kind == CPU else f", {profiles.kind}"


def _base_name(profiles: CaseProfiles) -> str:
    return next((variant.name for variant in profiles.variants if variant.role == Role.BASE), Role.BASE)
