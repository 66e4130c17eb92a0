# SPDX-License-Identifier: GPL-2.0-or-later
"""Expand an experiment: the combinations of its switches, and the order of its boots. Pure.

Designs, over switches in the order they are applied:

full           every subset
one-at-a-time  each switch with what it requires
leave-one-out  all switches, then all but one each (and but what requires that one)
cumulative     the first, the first two, …, all

The base, without switches, comes first in each. A combination that breaks `requires` or
`excludes`, or that `compatible` refuses, stays in the list with the reason.
"""

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeVar

from lab.errors import SpecError

# Beyond this nobody waits for the builds; full reaches it with eight switches.
MOST_COMBINATIONS = 256
Cell = TypeVar("Cell")


@dataclass(frozen=True, slots=True)
class Toggle:
    """A switch as far as designs care: its name and the names of its partners and rivals."""

    name: str
    requires: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Clash:
    """The reason why a combination cannot be made: one line, and the evidence."""

    reason: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Combination:
    """Switches that are on, in order of application; clash tells why it is pruned."""

    switches: tuple[str, ...]
    clash: Clash | None = None

    @property
    def name(self) -> str:
        """Name of the variant: "base" or the switches joined by +."""
        return "+".join(self.switches) or "base"

    @property
    def pruned(self) -> str:
        """The reason it is pruned, or nothing."""
        return self.clash.reason if self.clash else ""


Compatible = Callable[[tuple[str, ...]], Clash | None]


def expand(toggles: Sequence[Toggle], design: str, compatible: Compatible) -> list[Combination]:
    """Return the design's combinations, base first, each once; asks `compatible` of those left.

    Raises SpecError when there would be more than MOST_COMBINATIONS.
    """
    by_name = {toggle.name: toggle for toggle in toggles}
    expanded = []
    for chosen in _design(toggles, design):
        reason = _broken_rule(chosen, by_name)
        clash = Clash(reason) if reason else compatible(chosen)
        expanded.append(Combination(chosen, clash))
    return expanded


def _design(toggles: Sequence[Toggle], design: str) -> list[tuple[str, ...]]:
    names = [toggle.name for toggle in toggles]
    if design == "full" and 2 ** len(names) > MOST_COMBINATIONS:
        raise SpecError(
            f"design: full makes {2 ** len(names)} combinations of {len(names)} switches, "
            f"at most {MOST_COMBINATIONS} can be run; choose one-at-a-time or leave-one-out"
        )
    if design == "full":
        subsets: list[Iterable[str]] = [
            s for size in range(len(names) + 1) for s in combinations(names, size)
        ]
    elif design == "one-at-a-time":
        subsets = [(), *(_with_required({name}, toggles) for name in names)]
    elif design == "leave-one-out":
        subsets = [(), names, *(set(names) - _with_dependents({name}, toggles) for name in names)]
    else:
        subsets = [names[:count] for count in range(len(names) + 1)]
    ordered = (tuple(name for name in names if name in set(subset)) for subset in subsets)
    return list(dict.fromkeys(ordered))


def _with_required(chosen: set[str], toggles: Sequence[Toggle]) -> set[str]:
    grown = chosen | {need for toggle in toggles if toggle.name in chosen for need in toggle.requires}
    return grown if grown == chosen else _with_required(grown, toggles)


def _with_dependents(left_out: set[str], toggles: Sequence[Toggle]) -> set[str]:
    grown = left_out | {toggle.name for toggle in toggles if left_out & set(toggle.requires)}
    return grown if grown == left_out else _with_dependents(grown, toggles)


def _broken_rule(chosen: tuple[str, ...], by_name: dict[str, Toggle]) -> str:
    for name in chosen:
        missing = [need for need in by_name[name].requires if need not in chosen]
        if missing:
            return f"{name} requires {', '.join(missing)}"
        rivals = [rival for rival in by_name[name].excludes if rival in chosen]
        if rivals:
            return f"{name} excludes {', '.join(rivals)}"
    return ""


def block_order(cells: Sequence[Cell], blocks: Iterable[int], seed: int) -> list[tuple[int, Cell]]:
    """Return randomised complete blocks: each holds every cell once, shuffled.

    A block is a round of boots: what drifts between rounds cancels when rounds are compared within
    themselves. Sorting by one draw of Mersenne Twister's random() per cell, seeded with "seed/block",
    is an unbiased shuffle that Python promises to repeat in every version.
    """
    order = []
    for block in blocks:
        draw = random.Random(f"{seed}/{block}")  # noqa: S311 (order, not secrecy)
        keys = [draw.random() for _ in cells]
        order += [(block, cells[index]) for index in sorted(range(len(cells)), key=keys.__getitem__)]
    return order
