# SPDX-License-Identifier: GPL-2.0-or-later
"""Align several profiles: one tree of frames, with the samples of each profile at every node.

Frames are aligned by their chain of callers under the names of the source: the compiler's copies of a function
(.isra.0, .constprop.0, .part.0, .cold) are the function, so that a patch that makes the compiler inline differently does
not look as if one function vanished and another appeared. Frames that only some profiles hold are kept.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lab.profiles.analysis.frame_names import ASIDE, IDLE, INTERRUPTS, normalise
from lab.profiles.analysis.frame_tree import ROOT, FrameTree, cut_name, numbered

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class UnitedTree:
    """Nodes in preorder, siblings ascending by name; node 0 is the root, with parent -1.

    names: of the source, each once, ascending by UTF-8. raw: index of a name → the compiler's names it stands for,
    where they differ. parent, name, end: int64[n], as in FrameTree. own, total: int64[n, profiles], samples whose
    innermost frame the node is, and samples in it or below; without those of idle CPUs, which `resting` has by
    innermost frame.
    """

    names: tuple[str, ...]
    raw: Mapping[int, tuple[str, ...]]
    parent: Integers
    name: Integers
    end: Integers
    own: Integers
    total: Integers
    resting: Integers

    def __len__(self) -> int:
        return len(self.parent)

    @property
    def samples(self) -> Integers:
        """int64[profiles]: the totals of which shares are taken."""
        samples: Integers = self.total[0]
        return samples

    @property
    def idle(self) -> NDArray[np.float64]:
        """float64[profiles]: the fraction of each profile's samples that was left out as idle."""
        left = np.asarray(self.resting.sum(axis=0), dtype=float)
        return left / np.maximum(left + self.samples, 1)


@dataclass(frozen=True, eq=False)
class Levels:
    """A tree by levels: nodes ascend by depth, then parent, then name. bounds: where each level begins, and the end."""

    parent: Integers
    name: Integers
    bounds: list[tuple[int, int]]


def align(trees: Sequence[FrameTree], *, idle: bool = False, exact: bool = False) -> UnitedTree:
    """Lay profiles over each other, in the order given. Takes time in proportion to nodes and depth.

    idle: count the samples in which a CPU does nothing like others. How long CPUs idle depends on the load's balance,
    and would dilute every other share with it; an interrupt that an idle CPU takes is work. exact: leave out
    interrupts and kernel threads instead, which exact profiles have as roots of their own.
    """
    if not trees:
        return _nothing()
    names, raw, numbers = _source_names(trees)
    levels, places = by_levels(trees, numbers, len(names))
    own = np.stack(
        [_added(place, tree.own, levels) for place, tree in zip(places, trees, strict=True)], axis=1
    )
    resting = np.zeros_like(own)
    if not idle:
        mark = _beside(levels, names) if exact else _idles(levels, names)
        resting[mark], own[mark] = own[mark], 0
    return united(names, raw, levels, own, resting)


def united(
    names: tuple[str, ...],
    raw: Mapping[int, tuple[str, ...]],
    levels: Levels,
    own: Integers,
    resting: Integers,
) -> UnitedTree:
    """Return levels as a tree in preorder. own, resting: int64[n, profiles], in the order of the levels."""
    order, parent, end = in_preorder(levels)
    own = own[order]
    return UnitedTree(
        names, raw, parent, levels.name[order], end, own, totals_below(own, end), resting[order]
    )


def ordered(names: Sequence[str], parent: Integers, weights: Sequence[Integers]) -> tuple[FrameTree, ...]:
    """Return trees of equal nodes, one for each array of weights, from nodes that stand behind their parents.

    names: of each node; equal siblings become one node. parent: int64[n], -1 for node 0, the root.
    """
    raw = [cut_name(name) for name in names]
    known = sorted(set(raw))
    ranks = {name: rank for rank, name in enumerate(known)}
    name = np.array([ranks[raw_name] for raw_name in raw], np.int32)
    whole = FrameTree(
        tuple(raw_name.decode() for raw_name in known), parent.astype(np.int32), name, weights[0]
    )
    levels, (place,) = by_levels([whole], [np.arange(len(known))], len(known))
    order, above, _ = in_preorder(levels)
    return tuple(
        numbered(whole.names, above.astype(np.int32), levels.name[order], _added(place, own, levels)[order])
        for own in weights
    )


def _nothing() -> UnitedTree:
    """The root alone, of no profile."""
    none = np.zeros((1, 0), np.int64)
    return UnitedTree((ROOT,), {}, np.array([-1]), np.array([0]), np.array([1]), none, none, none)


def _source_names(
    trees: Sequence[FrameTree],
) -> tuple[tuple[str, ...], dict[int, tuple[str, ...]], list[Integers]]:
    """All names of the source, ascending; what they stand for; and for each tree its names' numbers."""
    sources = [[normalise(name) for name in tree.names] for tree in trees]
    names = sorted({name for own in sources for name in own}, key=str.encode)
    ranks = {name: rank for rank, name in enumerate(names)}
    copies: dict[int, set[str]] = {}
    for tree, own in zip(trees, sources, strict=True):
        for original, name in zip(tree.names, own, strict=True):
            if original != name:
                copies.setdefault(ranks[name], set()).add(original)
    known = {name for tree in trees for name in tree.names}
    for rank, given_names in copies.items():
        given_names |= {names[rank]} & known
    numbers = [np.array([ranks[name] for name in own], np.int64) for own in sources]
    return tuple(names), {rank: tuple(sorted(originals)) for rank, originals in copies.items()}, numbers


def by_levels(
    trees: Sequence[FrameTree], numbers: Sequence[Integers], names: int
) -> tuple[Levels, list[Integers]]:
    """Return the union by levels, and for each tree the places of its nodes."""
    sizes = [len(tree) for tree in trees]
    offsets = np.cumsum([0, *sizes])
    parent = np.concatenate([tree.parent + offset for tree, offset in zip(trees, offsets, strict=False)])
    name = np.concatenate([own[tree.name] for own, tree in zip(numbers, trees, strict=True)])
    depth = np.concatenate([tree.depth for tree in trees])
    order = np.argsort(depth, kind="stable")
    starts = np.searchsorted(depth[order], np.arange(int(depth.max()) + 2)).tolist()
    place = np.zeros(len(parent), np.int64)
    # All roots become one, whatever their names.
    parents, level_names, bounds = [np.array([-1])], [name[order[:1]]], [(0, 1)]
    for begin, end in pairwise(starts[1:]):
        here = order[begin:end]
        # The key of a node of the union is its parent and its name, as one number.
        keys, which = np.unique(place[parent[here]] * names + name[here], return_inverse=True)
        first = bounds[-1][1]
        place[here] = first + which
        parents.append(keys // names)
        level_names.append(keys % names)
        bounds.append((first, first + len(keys)))
    levels = Levels(np.concatenate(parents), np.concatenate(level_names), bounds)
    return levels, np.split(place, offsets[1:-1])


def _added(place: Integers, own: Integers, levels: Levels) -> Integers:
    """One tree's samples at the union's nodes; float64 sums are exact, since all samples are less than 2^53."""
    added = np.bincount(place, weights=own.astype(float), minlength=len(levels.parent))
    return added.astype(np.int64)


def _idles(levels: Levels, names: Sequence[str]) -> Flags:
    """Nodes in or below the idle loop that are not in or below the entry of an interrupt."""
    idle = np.array([name == IDLE for name in names])[levels.name]
    woken = np.array([any(word in name for word in INTERRUPTS) for name in names])[levels.name]
    for begin, end in levels.bounds[1:]:
        above = levels.parent[begin:end]
        idle[begin:end] |= idle[above]
        woken[begin:end] |= woken[above]
    return np.asarray(idle & ~woken, dtype=bool)


def _beside(levels: Levels, names: Sequence[str]) -> Flags:
    """Nodes in or below the roots that are not the workload's."""
    mark = np.zeros(len(levels.parent), dtype=bool)
    for begin, end in levels.bounds[1:2]:
        mark[begin:end] = np.array([name in ASIDE for name in names])[levels.name[begin:end]]
    for begin, end in levels.bounds[2:]:
        mark[begin:end] = mark[levels.parent[begin:end]]
    return mark


def in_preorder(levels: Levels) -> tuple[Integers, Integers, Integers]:
    """Order that brings levels into preorder; then, in that order, parents and where each subtree ends."""
    count = len(levels.parent)
    size = np.ones(count, np.int64)
    for begin, end in reversed(levels.bounds[1:]):
        np.add.at(size, levels.parent[begin:end], size[begin:end])
    place = np.zeros(count, np.int64)
    for begin, end in levels.bounds[1:]:
        above, own = levels.parent[begin:end], size[begin:end]
        before = np.cumsum(own) - own
        # Siblings stand side by side: what precedes the first of them belongs to others.
        firsts = np.flatnonzero(np.diff(above, prepend=-1))
        strangers = np.repeat(before[firsts], np.diff(firsts, append=len(above)))
        place[begin:end] = place[above] + 1 + before - strangers
    order = np.empty(count, np.int64)
    order[place] = np.arange(count)
    parent = np.where(order > 0, place[levels.parent[order]], -1)
    return order, parent, np.arange(count) + size[order]


def totals_below(own: Integers, end: Integers) -> Integers:
    """Samples in each node or below: in preorder a subtree is one stretch."""
    running = np.concatenate((np.zeros((1, own.shape[1]), np.int64), np.cumsum(own, axis=0)))
    total: Integers = running[end] - running[:-1]
    return total


def summed(tree: UnitedTree, own: Flags, *, idle: bool) -> FrameTree:
    """Some profiles added up, as one tree under the names of the source. own: bool[profiles]. idle: with idle CPUs."""
    samples = tree.own[:, own].sum(axis=1)
    if idle:
        samples = samples + tree.resting[:, own].sum(axis=1)
    keep = totals_below(samples[:, None], tree.end)[:, 0] > 0
    keep[0] = True
    place = np.cumsum(keep) - 1
    used, name = np.unique(tree.name[keep], return_inverse=True)
    parent = np.where(tree.parent[keep] < 0, -1, place[tree.parent[keep]])
    names = tuple(tree.names[number] for number in used.tolist())
    return FrameTree(names, parent.astype(np.int32), name.astype(np.int32), samples[keep])
