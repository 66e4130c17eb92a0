# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles aligned from one function: below the root the symbols asked for, below each its callers, or what it calls."""

import numpy as np

from lab.profiles.analysis.frame_alignment import Integers, Levels, UnitedTree, by_levels, united
from lab.profiles.analysis.frame_tree import FrameTree
from lab.profiles.analysis.symbol_counts import outermost_of

# Callers with a smaller share than this are not followed further: they would be too thin to see.
LEAST = 1 / 200_000
# Nor are callers further out: perf records 127 frames, and a guest may claim a million.
DEEPEST = 200


def caller_tree(tree: UnitedTree, symbol: str = "") -> UnitedTree:
    """Return the tree of callers of a symbol, callees' samples included; of each sample's own frame if it is empty.

    The symbol is that of exactly this name, else all whose names contain it, in any case. The root bears the symbol's name;
    its samples are those in the symbol.
    """
    nodes, weights = _seeds(tree, symbol)
    count, (known, root) = len(tree.names), root_named(tree, symbol)
    heights = weights.sum(axis=1).astype(float)
    least = heights.sum() * LEAST
    parents, names, owns, bounds = [np.array([-1])], [np.array([root])], [_none(tree, 1)], [(0, 1)]
    here, group = nodes, np.zeros(len(nodes), np.int64)
    for depth in range(DEEPEST):
        if not here.size:
            break
        # A node's key is the node inside of it and its own name, as one number.
        keys, which = np.unique(group * count + tree.name[here], return_inverse=True)
        first = bounds[-1][1]
        bounds.append((first, first + len(keys)))
        parents.append(keys // count)
        names.append(keys % count)
        heavy = np.bincount(which, weights=heights, minlength=len(keys))
        above = tree.parent[here]
        last = (above <= 0) | (heavy[which] < least) | (depth == DEEPEST - 1)
        own = _none(tree, len(keys))
        np.add.at(own, which[last], weights[last])
        owns.append(own)
        here, group, weights, heights = above[~last], first + which[~last], weights[~last], heights[~last]
    levels = Levels(np.concatenate(parents), np.concatenate(names), bounds)
    samples = np.concatenate(owns)
    return united(known, tree.raw, levels, samples, np.zeros_like(samples))


def outermost_matching(tree: UnitedTree, symbol: str) -> Integers:
    """int64[found]: outermost nodes of the symbol of exactly this name, else of all whose names contain it."""
    term = symbol.lower()
    named = [symbol] if symbol in tree.names else [name for name in tree.names if term in name.lower()]
    return outermost_of(tree, named)


def root_named(tree: UnitedTree, symbol: str) -> tuple[tuple[str, ...], int]:
    """Return the names of a tree with the symbol among them, each once, and the symbol's place; the root's if it is empty."""
    if not symbol:
        return tree.names, int(tree.name[0])
    if symbol in tree.names:
        return tree.names, tree.names.index(symbol)
    return (*tree.names, symbol), len(tree.names)


def _seeds(tree: UnitedTree, symbol: str) -> tuple[Integers, Integers]:
    """Return the nodes whose callers are wanted, and the samples of each: int64[nodes, profiles]."""
    if not symbol:
        own = np.flatnonzero(tree.own.any(axis=1))
        own = own[own > 0]
        return own, tree.own[own]
    nodes = outermost_matching(tree, symbol)
    return nodes, tree.total[nodes]


def _none(tree: UnitedTree, rows: int) -> Integers:
    return np.zeros((rows, tree.own.shape[1]), np.int64)


def callee_tree(tree: UnitedTree, symbol: str) -> UnitedTree:
    """Return what a symbol calls, from wherever it is called itself, as one tree.

    The symbol is found as caller_tree finds it. The root bears its name; its samples are those in the symbol.
    """
    nodes = outermost_matching(tree, symbol)
    names, root = root_named(tree, symbol)
    # In preorder a subtree is one stretch, and the outermost ones do not overlap.
    sizes = tree.end[nodes] - nodes
    inside = np.repeat(nodes - np.cumsum(sizes) + sizes, sizes) + np.arange(int(sizes.sum()))
    moved = np.zeros(len(tree), np.int64)
    moved[inside] = np.arange(1, len(inside) + 1)
    parent = np.concatenate(([-1], moved[tree.parent[inside]])).astype(np.int32)
    name = np.concatenate(([root], tree.name[inside])).astype(np.int32)
    apart = FrameTree(names, parent, name, np.zeros(len(parent), np.int64))
    levels, (place,) = by_levels([apart], [np.arange(len(names))], len(names))
    own = np.zeros((len(levels.parent), tree.own.shape[1]), np.int64)
    np.add.at(own, place[1:], tree.own[inside])
    return united(names, tree.raw, levels, own, np.zeros_like(own))
