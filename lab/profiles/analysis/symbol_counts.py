# SPDX-License-Identifier: GPL-2.0-or-later
"""Samples by symbol, caller and callee of several profiles side by side, to be compared like frames.

A stack counts once however often a symbol occurs in it: at the outermost occurrence.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lab.profiles.analysis.frame_alignment import Flags, Integers, UnitedTree

# Shares by caller are about symbols that something calls; a symbol without callers gets this text.
NO_CALLER = "(no caller)"
ITSELF = "(itself)"


@dataclass(frozen=True, eq=False)
class Counts:
    """Rows of samples: names, and int64[rows, profiles]."""

    names: tuple[str, ...]
    samples: Integers


@dataclass(frozen=True, eq=False)
class SymbolCounts:
    """Samples in each symbol itself (own), and in it or in what it calls (total): int64[names, profiles]."""

    own: Integers
    total: Integers


@dataclass(frozen=True, eq=False)
class CallerCounts:
    """Samples in some symbols, split by the caller of the outermost of them: in total, by caller, and by caller for each symbol."""

    total: Integers
    by_caller: Counts
    by_symbol: tuple[tuple[str, Counts], ...]


def symbol_counts(tree: UnitedTree) -> SymbolCounts:
    """Samples of every name of the tree; the root's name counts where frames bear it."""
    below = np.arange(1, len(tree))
    own = _added(tree.name[1:], tree.own[1:], len(tree.names))
    top = below[_outermost(tree.name[1:], below, tree.end[1:])]
    return SymbolCounts(own, _added(tree.name[top], tree.total[top], len(tree.names)))


def caller_counts(tree: UnitedTree, symbols: Sequence[str]) -> CallerCounts:
    """Split the samples of `symbols` by caller, as the kernfs mail presents its profile.

    Shares of callers add up to the total; what such a symbol calls in turn (down_read's slow path) belongs to it.
    """
    nodes = outermost_of(tree, symbols)
    callers = _names_above(tree, nodes)
    by_symbol = []
    for symbol in dict.fromkeys(symbols):
        own = _is_named(tree, nodes, [symbol])
        if own.any():
            by_symbol.append((symbol, _by_name(tree, callers[own], tree.total[nodes[own]], NO_CALLER)))
    total = tree.total[nodes].sum(axis=0, keepdims=True)
    return CallerCounts(total, _by_name(tree, callers, tree.total[nodes], NO_CALLER), tuple(by_symbol))


def callee_counts(tree: UnitedTree, symbol: str) -> Counts:
    """Samples in a symbol split by what it calls; those in itself are a row of their own.

    Frames below an inner occurrence belong to what the outermost one called on the way there.
    """
    nodes = outermost_of(tree, [symbol])
    called = np.flatnonzero(np.isin(tree.parent, nodes))
    names = np.concatenate((tree.name[called], np.full(len(nodes), -1)))
    return _by_name(tree, names, np.concatenate((tree.total[called], tree.own[nodes])), ITSELF)


def outermost_of(tree: UnitedTree, symbols: Sequence[str]) -> Integers:
    """int64[found]: nodes of these names that lie below no other of them, ascending."""
    nodes = np.arange(1, len(tree))
    nodes = nodes[_is_named(tree, nodes, symbols)]
    kept: Integers = nodes[_outermost(np.zeros(len(nodes), np.int64), nodes, tree.end[nodes])]
    return kept


def _is_named(tree: UnitedTree, nodes: Integers, symbols: Sequence[str]) -> Flags:
    wanted = frozenset(symbols)
    return np.array([name in wanted for name in tree.names], dtype=bool)[tree.name[nodes]]


def _outermost(label: Integers, start: Integers, end: Integers) -> Flags:
    """bool[nodes]: which lie below no other of their label; start ascends, start to end is a node's subtree."""
    order = np.argsort(label, kind="stable")
    width = int(end.max(initial=0)) + 1
    # Where the subtrees end so far, label by label: a label's numbers all exceed those of the one before.
    reach = np.maximum.accumulate(label[order] * width + end[order]) if len(label) else order
    covered = np.zeros(len(label), dtype=bool)
    covered[order[1:]] = reach[:-1] > label[order[1:]] * width + start[order[1:]]
    return np.asarray(~covered, dtype=bool)


def _names_above(tree: UnitedTree, nodes: Integers) -> Integers:
    """Names of the callers; -1 where the root is the caller."""
    above = tree.parent[nodes]
    return np.where(above > 0, tree.name[above], -1)


def _by_name(tree: UnitedTree, names: Integers, samples: Integers, nameless: str) -> Counts:
    """Rows added up by name, the largest first; -1 stands for `nameless`."""
    distinct, which = np.unique(names, return_inverse=True)
    added = _added(which, samples, len(distinct))
    order = np.argsort(-added.sum(axis=1), kind="stable")
    kept = [place for place in order.tolist() if added[place].any()]
    labels = tuple(nameless if distinct[place] < 0 else tree.names[distinct[place]] for place in kept)
    return Counts(labels, added[kept])


def _added(place: NDArray[np.int64], samples: Integers, rows: int) -> Integers:
    """Sums of rows by place, a profile a column; float64 sums are exact below 2^53."""
    columns = [np.bincount(place, weights=column.astype(float), minlength=rows) for column in samples.T]
    return np.array(columns, float).reshape(len(columns), rows).T.astype(np.int64)
