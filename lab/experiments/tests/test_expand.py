# SPDX-License-Identifier: GPL-2.0-or-later
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import SpecError
from lab.experiments.expand import Clash, Combination, Toggle, block_order, expand

A, B, C = Toggle("a"), Toggle("b"), Toggle("c")


def fits(_: tuple[str, ...]) -> None:
    return None


def names(toggles: list[Toggle], design: str) -> list[str]:
    return [combination.name for combination in expand(toggles, design, fits)]


@pytest.mark.parametrize(
    ("design", "expected"),
    [
        ("full", ["base", "a", "b", "c", "a+b", "a+c", "b+c", "a+b+c"]),
        ("one-at-a-time", ["base", "a", "b", "c"]),
        ("leave-one-out", ["base", "a+b+c", "b+c", "a+c", "a+b"]),
        ("cumulative", ["base", "a", "a+b", "a+b+c"]),
    ],
)
def test_designs(design: str, expected: list[str]) -> None:
    assert names([A, B, C], design) == expected


@pytest.mark.parametrize("design", ["full", "one-at-a-time", "leave-one-out", "cumulative"])
def test_without_switches_there_is_the_base_alone(design: str) -> None:
    assert names([], design) == ["base"]


@pytest.mark.parametrize("design", ["full", "one-at-a-time", "leave-one-out", "cumulative"])
def test_one_switch_is_on_or_off_in_every_design(design: str) -> None:
    assert names([A], design) == ["base", "a"]


def test_the_alternatives_of_the_kernfs_mail_are_never_on_together() -> None:
    toggles = [Toggle("global", excludes=("hashed",)), Toggle("hashed")]
    combinations = expand(toggles, "full", fits)
    assert [(c.name, c.pruned) for c in combinations] == [
        ("base", ""),
        ("global", ""),
        ("hashed", ""),
        ("global+hashed", "global excludes hashed"),
    ]


def test_a_switch_without_what_it_requires_is_pruned_in_a_full_design() -> None:
    combinations = expand([A, Toggle("b", requires=("a",))], "full", fits)
    assert [c.name for c in combinations if c.pruned] == ["b"]
    assert combinations[2].pruned == "b requires a"


def test_one_at_a_time_turns_on_what_a_switch_requires_through_others() -> None:
    chain = [A, Toggle("b", requires=("a",)), Toggle("c", requires=("b",))]
    assert names(chain, "one-at-a-time") == ["base", "a", "a+b", "a+b+c"]


def test_leave_one_out_drops_what_requires_the_one_left_out() -> None:
    chain = [A, Toggle("b", requires=("a",)), C]
    assert names(chain, "leave-one-out") == ["base", "a+b+c", "c", "a+c", "a+b"]


def test_a_combination_that_does_not_apply_is_pruned_with_its_reason() -> None:
    clash = Clash("b clashes with a in fs/inode.c", "the hunk")
    combinations = expand([A, B], "full", lambda chosen: clash if chosen == ("a", "b") else None)
    assert combinations[-1] == Combination(("a", "b"), clash)
    assert combinations[-1].pruned == "b clashes with a in fs/inode.c"


def test_combinations_that_break_a_rule_are_not_tried() -> None:
    tried: list[tuple[str, ...]] = []
    expand([Toggle("a", excludes=("b",)), B], "full", lambda chosen: tried.append(chosen))
    assert ("a", "b") not in tried


def test_too_many_combinations_are_refused_with_a_way_out() -> None:
    many = [Toggle(f"s{number}") for number in range(9)]
    with pytest.raises(SpecError, match=r"512 combinations of 9 switches.*one-at-a-time"):
        expand(many, "full", fits)
    assert len(expand(many, "one-at-a-time", fits)) == 10


@given(st.integers(1, 9), st.integers(1, 12), st.integers(0, 2**63 - 1))
def test_every_block_holds_every_cell_once(cells: int, blocks: int, seed: int) -> None:
    order = block_order(range(cells), range(blocks), seed)
    assert [block for block, _ in order] == sorted(block for block, _ in order)
    assert Counter(order) == {(block, cell): 1 for block in range(blocks) for cell in range(cells)}


def test_the_order_is_the_same_for_the_same_seed_on_every_machine() -> None:
    # Written down once: a change of Python must not change the order of an experiment.
    assert "".join(cell for _, cell in block_order("abcd", range(3), 1)) == "bcdaabcdadcb"


def test_no_place_in_a_block_prefers_a_cell() -> None:
    first = Counter(block_order("abc", range(1), seed)[0][1] for seed in range(3000))
    assert all(900 < count < 1100 for count in first.values())


def test_a_block_that_is_added_later_has_the_order_it_would_have_had() -> None:
    assert block_order("abcd", range(2, 5), 1) == block_order("abcd", range(5), 1)[8:]
