# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles seen from the callers' end: nothing is lost, nothing counted twice, and certainty goes with it."""

import numpy as np
import pytest

from lab.profiles.analysis.caller_tree import DEEPEST, caller_tree
from lab.profiles.analysis.frame_alignment import UnitedTree, align
from lab.profiles.analysis.frame_shifts import compare_profiles, sides_of
from lab.profiles.analysis.frame_tree import build_tree

Stacks = dict[tuple[str, ...], int]


def united(*sides: Stacks) -> UnitedTree:
    return align([build_tree(side.items()) for side in sides])


def chains(tree: UnitedTree) -> dict[tuple[str, ...], list[int]]:
    """By chain of names from the root down: the samples in it or below, a profile each."""
    samples: dict[tuple[str, ...], list[int]] = {}
    paths: list[tuple[str, ...]] = []
    for node in range(len(tree)):
        above = int(tree.parent[node])
        paths.append((*(paths[above] if above >= 0 else ()), tree.names[int(tree.name[node])]))
        samples[paths[node]] = tree.total[node].tolist()
    return samples


def test_below_a_symbol_stands_who_called_it() -> None:
    tree = united(
        {("x", "open", "lock"): 6, ("x", "stat", "lock", "spin"): 4, ("y",): 5}, {("x", "open", "lock"): 1}
    )
    assert chains(caller_tree(tree, "lock")) == {
        ("lock",): [10, 1],
        ("lock", "lock"): [10, 1],
        ("lock", "lock", "open"): [6, 1],
        ("lock", "lock", "open", "x"): [6, 1],
        ("lock", "lock", "stat"): [4, 0],
        ("lock", "lock", "stat", "x"): [4, 0],
    }


def test_of_every_symbol_each_samples_own_frame_comes_first() -> None:
    tree = caller_tree(united({("x", "open"): 6, ("x",): 4, ("y", "open"): 1}))
    samples = chains(tree)
    assert samples["all",] == [11]
    assert (samples["all", "open"], samples["all", "x"]) == ([7], [4])
    assert samples["all", "open", "y"] == [1]


def test_a_recursive_symbol_counts_once() -> None:
    samples = chains(caller_tree(united({("x", "lock", "y", "lock"): 3}), "lock"))
    assert samples == {("lock",): [3], ("lock", "lock"): [3], ("lock", "lock", "x"): [3]}


def test_a_part_of_a_name_asks_for_all_that_hold_it_and_nothing_is_no_tree() -> None:
    tree = united({("x", "mutex_lock"): 3, ("x", "spin_LOCK"): 2, ("y",): 1})
    assert chains(caller_tree(tree, "lock"))["lock",] == [5]
    assert chains(caller_tree(tree, "nothing")) == {("nothing",): [0]}


def test_callers_too_thin_to_see_and_chains_too_long_are_cut_not_lost() -> None:
    deep = tuple(f"f{number}" for number in range(3 * DEEPEST))
    tree = united({(*deep, "lock"): 10**7, ("rare", "deep", "lock"): 1})
    callers = caller_tree(tree, "lock")
    assert callers.total[0].tolist() == [10**7 + 1]
    assert len(callers) < DEEPEST + 5
    assert ("lock", "lock", "deep", "rare") not in chains(callers)


def boot(reads: int) -> Stacks:
    return {("x", "open", "lock"): reads, ("x", "stat", "lock"): 300, ("x", "work"): 1000 - reads}


@pytest.mark.parametrize("waits", [False, True])
def test_a_difference_seen_from_the_callers_tells_what_is_certain(waits: bool) -> None:
    scale = 10**6 if waits else 1
    tree = united(
        *({stack: n * scale for stack, n in boot(reads).items()} for reads in (680, 690, 685, 260, 265, 255))
    )
    sides = sides_of(np.repeat([0, 1], 3), base=0, candidate=1)
    callers = caller_tree(tree, "lock")
    shifts = compare_profiles(callers, sides, unit="ns" if waits else "samples", whole=tree.samples).samples
    q_values = dict(zip(chains(callers), shifts.q.tolist(), strict=True))
    assert q_values["lock", "lock", "open"] < 0.05
    assert not q_values["lock", "lock", "stat"] < 0.05
