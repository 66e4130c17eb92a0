# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles aligned from one function down: below the root the symbols asked for, below each what it calls."""

import numpy as np

from lab.profiles.analysis.caller_tree import outermost_matching, root_named
from lab.profiles.analysis.frame_alignment import UnitedTree, by_levels, united
from lab.profiles.analysis.frame_tree import FrameTree


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
