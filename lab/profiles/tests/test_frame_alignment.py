# SPDX-License-Identifier: GPL-2.0-or-later
import random
from collections import Counter
from itertools import pairwise

import numpy as np

from lab.profiles.analysis.frame_alignment import UnitedTree, align, summed
from lab.profiles.analysis.frame_names import normalise
from lab.profiles.analysis.frame_tree import FrameTree, build_tree, pack, stacks_of, unpack

Stacks = dict[tuple[str, ...], int]


def tree(stacks: Stacks) -> FrameTree:
    return build_tree(stacks.items())


def paths(united: UnitedTree) -> list[tuple[str, ...]]:
    chains: list[tuple[str, ...]] = []
    for node, parent in enumerate(united.parent.tolist()):
        chains.append((*chains[parent], united.names[united.name[node]]) if node else ())
    return chains


def own(united: UnitedTree) -> dict[tuple[str, ...], list[int]]:
    return {path: row for path, row in zip(paths(united), united.own.tolist(), strict=True) if any(row)}


def some_stacks(seed: int, *, stacks: int = 60) -> Stacks:
    draw = random.Random(seed)
    names = ["a", "b", "b.isra.0", "b.constprop.3", "c", "do_idle", "sysvec_x", "é", "z.cold"]
    return {
        tuple(draw.choice(names) for _ in range(draw.randrange(1, 7))): draw.randrange(1, 50)
        for _ in range(stacks)
    }


def test_frames_of_both_sides_and_of_one_are_kept() -> None:
    united = align([tree({("a", "b"): 3, ("a",): 1}), tree({("a", "c"): 4})])
    assert own(united) == {("a",): [1, 0], ("a", "b"): [3, 0], ("a", "c"): [0, 4]}
    assert united.total[0].tolist() == [4, 4]
    assert united.samples.tolist() == [4, 4]


def test_the_compilers_copies_are_the_function_and_their_names_are_kept() -> None:
    united = align([tree({("a", "b.isra.0", "c"): 3, ("a", "b", "c"): 2}), tree({("a", "b.part.1", "c"): 7})])
    assert own(united) == {("a", "b", "c"): [5, 7]}
    assert united.raw == {united.names.index("b"): ("b", "b.isra.0", "b.part.1")}


def test_a_copy_of_a_modules_function_is_that_modules_function() -> None:
    united = align([tree({("a", "b.isra.0 [m]"): 3}), tree({("a", "b [m]"): 7, ("a", "b [other]"): 2})])
    assert own(united) == {("a", "b [m]"): [3, 7], ("a", "b [other]"): [0, 2]}


def test_idle_stacks_are_set_apart_but_an_interrupt_they_take_is_work() -> None:
    stacks = {
        ("swapper", "do_idle", "hlt"): 5,
        ("swapper", "do_idle", "sysvec_apic", "softirq"): 2,
        ("x",): 3,
    }
    united = align([tree(stacks)])
    assert united.samples.tolist() == [5]
    assert united.idle.tolist() == [0.5]
    assert (
        dict(zip(paths(united), united.resting[:, 0].tolist(), strict=True))["swapper", "do_idle", "hlt"] == 5
    )
    assert align([tree(stacks)], idle=True).samples.tolist() == [10]


def test_any_profiles_add_up_as_their_stacks_do() -> None:
    for seed in range(30):
        sides = [some_stacks(seed), some_stacks(seed + 1000), some_stacks(seed + 2000)]
        united = align([tree(side) for side in sides], idle=True)
        expected: dict[tuple[str, ...], list[int]] = {}
        for number, side in enumerate(sides):
            for stack, count in side.items():
                expected.setdefault(tuple(map(normalise, stack)), [0, 0, 0])[number] += count
        assert own(united) == expected
        for node, end in enumerate(united.end.tolist()):
            assert united.total[node].tolist() == united.own[node:end].sum(axis=0).tolist()


def test_nodes_are_in_preorder_and_siblings_ascend() -> None:
    united = align([tree(some_stacks(1)), tree(some_stacks(2))])
    encoded = [tuple(name.encode() for name in path) for path in paths(united)]
    assert all(before < after for before, after in pairwise(encoded))


def test_boots_added_up_are_a_tree_like_any_other() -> None:
    sides = [some_stacks(5), some_stacks(6)]
    united = align([tree(side) for side in sides])
    both = summed(united, np.array([True, True]), idle=True)
    added: Counter[tuple[str, ...]] = Counter()
    for side in sides:
        for stack, count in side.items():
            added[tuple(map(normalise, stack))] += count
    assert dict(stacks_of(both)) == dict(added)
    assert dict(stacks_of(unpack(pack(both)))) == dict(added)
    busy = summed(united, np.array([True, False]), idle=False)
    assert busy.samples == united.samples[0]


def test_a_stack_of_ten_thousand_frames_is_aligned() -> None:
    deep = {tuple(f"f{depth % 3}" for depth in range(10_000)): 2}
    united = align([tree(deep), tree(deep)])
    assert (len(united), united.total[-1].tolist()) == (10_001, [2, 2])


def test_profiles_of_nothing_and_no_profiles_are_a_root() -> None:
    assert align([tree({}), tree({})]).samples.tolist() == [0, 0]
    assert len(align([])) == 1
    assert align([tree({})]).idle.tolist() == [0.0]
