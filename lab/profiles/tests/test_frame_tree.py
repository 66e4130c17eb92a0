# SPDX-License-Identifier: GPL-2.0-or-later
"""The stored form of a profile: what goes in comes out, and nothing else is taken for one."""

from __future__ import annotations

import random
import zlib
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.profiles.analysis.frame_tree import (
    MOST_BYTES,
    NAME_BYTES,
    FrameTree,
    Stack,
    TreeDamaged,
    build_tree,
    pack,
    stacks_of,
    unpack,
)
from lab.profiles.analysis.prefix_tree import parents

SMALL = {
    ("find", "vfs_open", "down_read"): 3,
    ("find", "vfs_open"): 2,
    ("find", "up_read"): 1,
    ("swapper",): 4,
}
frames = st.lists(st.text(max_size=3), max_size=6).map(tuple)
profiles = st.dictionaries(frames, st.integers(1, 1 << 40), max_size=12)


def as_stacks(tree: FrameTree) -> dict[Stack, int]:
    return dict(stacks_of(tree))


def test_a_tree_in_preorder_has_siblings_by_name_and_the_root_first() -> None:
    tree = build_tree(SMALL.items())
    assert [tree.names[number] for number in tree.name] == [
        *("all", "find", "up_read", "vfs_open", "down_read", "swapper")
    ]
    assert tree.parent.tolist() == [-1, 0, 1, 1, 3, 0]
    assert tree.own.tolist() == [0, 0, 1, 2, 3, 4]
    assert tree.total.tolist() == [10, 6, 1, 5, 3, 4]
    assert tree.depth.tolist() == [0, 1, 2, 2, 3, 1]
    assert tree.samples == 10


def test_equal_profiles_are_equal_bytes_in_whatever_order_they_come() -> None:
    items = list(SMALL.items())
    halves = [(stack, 1) for stack, count in items for _ in range(count)]
    random.Random(1).shuffle(halves)
    assert pack(build_tree(halves)) == pack(build_tree(items)) == pack(build_tree(reversed(items)))


def test_no_stacks_at_all_are_a_root() -> None:
    tree = unpack(pack(build_tree([])))
    assert (len(tree), tree.samples, tree.names, as_stacks(tree)) == (1, 0, ("all",), {})


def test_empty_stacks_count_at_the_root() -> None:
    tree = build_tree([((), 2), (("a",), 1), ((), 3)])
    assert tree.own.tolist() == [5, 1]
    assert as_stacks(tree) == {(): 5, ("a",): 1}


@settings(max_examples=150, deadline=None)
@given(profiles)
def test_stacks_survive_building_packing_and_unpacking(stacks: dict[Stack, int]) -> None:
    tree = unpack(pack(build_tree(stacks.items())))
    assert as_stacks(tree) == stacks
    ours = Counter(dict.fromkeys(stacks, 0))
    for stack, count in stacks.items():
        for depth in range(len(stack) + 1):
            ours[stack[:depth]] += count
    assert sorted(tree.total.tolist()) == sorted(n for n in ours.values() if n) or not stacks
    assert [n for n in as_stacks(tree).values() if n <= 0] == []


def test_a_stack_of_ten_thousand_frames_is_kept_whole() -> None:
    deep = tuple(f"f{depth % 7}" for depth in range(10_000))
    tree = unpack(pack(build_tree([(deep, 2), (deep[:5000], 1), (("other",), 1)])))
    assert as_stacks(tree) == {deep: 2, deep[:5000]: 1, ("other",): 1}
    assert tree.total[1] == 3
    assert len(pack(tree)) < 1000


def test_a_symbol_of_ten_kilobytes_is_cut_between_characters() -> None:
    tree = unpack(pack(build_tree([(("ü" * 10_000, "leaf"), 1), (("ü" * 9000, "leaf"), 1)])))
    (stack,) = as_stacks(tree)
    assert stack[0].startswith("üü")
    assert stack[0].endswith("ü…")
    assert NAME_BYTES - 3 <= len(stack[0].encode()) <= NAME_BYTES
    assert tree.samples == 2


def test_a_name_that_cannot_be_written_in_utf_8_is_replaced() -> None:
    assert as_stacks(build_tree([(("a\udcff",), 1)])) == {("a?",): 1}


def test_frames_between_an_interior_node_and_a_leaf_have_no_samples_of_their_own() -> None:
    tree = build_tree([(("a", "b", "c"), 1), (("a",), 1)])
    assert tree.own.tolist() == [0, 1, 0, 1]


def test_many_samples_fit_and_too_many_are_refused() -> None:
    most = (1 << 53) - 1
    assert unpack(pack(build_tree([(("a",), most)]))).samples == most
    with pytest.raises(TreeDamaged, match="too large"):
        pack(build_tree([(("a",), most), (("b",), 1)]))


def packed(body: bytes) -> bytes:
    return zlib.compress(body)


ONE = b"KPT1\x01\x03all\x01\x00\x00\x05"


def test_the_packed_form_is_what_its_description_says() -> None:
    assert zlib.decompress(pack(build_tree([((), 5)]))) == ONE
    two = zlib.decompress(pack(build_tree([(("b",), 300), (("b", "b"), 1), (("a",), 2)])))
    assert (
        two
        == b"KPT1\x03\x01b\x01a\x03all\x04"
        + b"\x00\x00\x01\x00"
        + b"\x02\x01\x00\x00"
        + b"\x00\x02\xac\x02\x01"
    )


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "cut short"),
        (b"not zlib", "damaged"),
        (packed(ONE)[:-1], "cut short"),
        (packed(ONE) + b"x", "follows"),
        (packed(b"KPT2" + ONE[4:]), "KPT1"),
        (packed(b"KPT1"), "no number"),
        (packed(b"KPT1" + b"\xff" * 20), "no number"),
        (packed(b"KPT1\x01\x7fall"), "127 bytes"),
        (packed(b"KPT1\x01\xff\x7f" + b"x" * 16383 + b"\x01\x00\x00\x00"), "16383 bytes"),
        (packed(b"KPT1\x02\x01a\x01a\x01\x00\x00\x00"), "names"),
        (packed(b"KPT1\x01\x01\xff\x01\x00\x00\x00"), "utf-8"),
        (packed(b"KPT1\x01\x01a\x00"), "0 nodes"),
        (packed(b"KPT1\x01\x01a\xff\xff\xff\xff\x0f\x00\x00\x00"), "nodes"),
        (packed(b"KPT1\x01\x01a\x01\x00\x00\x00\x00"), "hold 4"),
        (packed(b"KPT1\x01\x01a\x01\x00\x00"), "hold 2"),
        (packed(b"KPT1\x01\x01a\x01\x00\x00" + b"\x80" * 9 + b"\x00"), "numbers"),
        (packed(b"KPT1\x01\x01a\x01\x00\x01\x00"), "frame 1 of 1"),
        (packed(b"KPT1\x00\x01\x00\x00\x00"), "frame 0 of 0"),
        (packed(b"KPT1\x01\x01a\x01\x01\x00\x00"), "form a tree"),
        (packed(b"KPT1\x01\x01a\x02\x00\x01\x00\x00\x00\x00"), "form a tree"),
        (packed(b"KPT1\x01\x01a\x02\x00" + b"\xff" * 7 + b"\x7f\x00\x00\x00\x00"), "form a tree"),
        (packed(b"KPT1\x01\x01a\x01\x00\x00" + b"\xff" * 7 + b"\x7f"), "counted"),
        (packed(bytes(MOST_BYTES + 1)), "MiB"),
    ],
)
def test_anything_else_is_refused_in_one_line(data: bytes, why: str) -> None:
    with pytest.raises(TreeDamaged, match=why) as caught:
        unpack(data)
    assert "\n" not in str(caught.value)


def test_no_single_flipped_byte_does_more_than_be_refused() -> None:
    body = zlib.decompress(pack(build_tree(SMALL.items())))
    for at in range(len(body)):
        for flip in (1, 0x80, 0xFF):
            hurt = bytearray(body)
            hurt[at] ^= flip
            try:
                tree = unpack(packed(bytes(hurt)))
            except TreeDamaged:
                continue
            assert tree.total[0] == tree.samples
            assert len(as_stacks(tree)) <= len(tree)


@pytest.mark.thorough
def test_a_tree_of_a_million_nodes_takes_no_loop_over_them() -> None:
    generator = np.random.default_rng(1)
    # A walk that mostly goes one deeper, sometimes far back.
    depths, depth = [0], 0
    for step in generator.choice([1, 1, 1, 0, -1, -4], size=1_000_000).tolist():
        depth = max(1, depth + step)
        depths.append(depth)
    whole = np.array(depths, np.int64)
    tree = FrameTree(("all",), parents(whole), np.zeros(len(whole), np.int32), np.ones(len(whole), np.int64))
    assert tree.depth.tolist() == whole.tolist()
    assert tree.total[0] == len(whole)
    assert unpack(pack(tree)).total.tolist() == tree.total.tolist()
