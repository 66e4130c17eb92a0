# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles seen from one function down: what it calls from all its callers together, nothing lost or counted twice."""

import numpy as np

from lab.profiles.analysis.caller_tree import callee_tree
from lab.profiles.analysis.frame_alignment import summed
from lab.profiles.analysis.frame_shifts import compare_profiles, sides_of
from lab.profiles.analysis.frame_tree import pack, unpack
from lab.profiles.tests.test_caller_tree import chains, united


def test_below_a_symbol_stands_what_it_calls_whoever_called_it() -> None:
    tree = united(
        {("x", "open", "lock", "spin"): 6, ("x", "stat", "lock", "spin"): 4, ("y", "lock"): 5, ("z",): 9},
        {("x", "open", "lock", "sleep", "switch"): 1},
    )
    assert chains(callee_tree(tree, "lock")) == {
        ("lock",): [15, 1],
        ("lock", "lock"): [15, 1],
        ("lock", "lock", "sleep"): [0, 1],
        ("lock", "lock", "sleep", "switch"): [0, 1],
        ("lock", "lock", "spin"): [10, 0],
    }


def test_an_inner_call_of_a_recursive_symbol_stays_where_it_is() -> None:
    tree = united({("x", "walk", "step", "walk", "step"): 3, ("x", "walk", "stop"): 2})
    samples = chains(callee_tree(tree, "walk"))
    assert samples["walk", "walk"] == [5]
    assert samples["walk", "walk", "step", "walk", "step"] == [3]


def test_a_symbol_that_nothing_holds_has_no_tree() -> None:
    assert chains(callee_tree(united({("x",): 3}), "nothing")) == {("nothing",): [0]}


def test_a_tree_from_one_symbol_down_can_be_stored_like_any_other() -> None:
    tree = callee_tree(united({("x", "lock", "spin"): 3}, {("lock",): 2}), "lock")
    whole = summed(tree, np.array([True, True]), idle=False)
    assert unpack(pack(whole)).samples == 5


def test_a_difference_seen_from_one_symbol_down_tells_what_is_certain() -> None:
    boots = [
        {("a", "open", "spin"): spin, ("b", "open", "spin"): spin, ("b", "open", "work"): 400, ("rest",): 900}
        for spin in (100, 102, 101, 300, 305, 295)
    ]
    whole = united(*boots)
    callees = callee_tree(whole, "open")
    shifts = compare_profiles(
        callees, sides_of(np.repeat([0, 1], 3), base=0, candidate=1), whole=whole.samples
    ).samples
    q_values = dict(zip(chains(callees), shifts.q.tolist(), strict=True))
    assert q_values["open", "open", "spin"] < 0.05
    assert not q_values["open", "open", "work"] < 0.05
