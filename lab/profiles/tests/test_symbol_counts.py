# SPDX-License-Identifier: GPL-2.0-or-later
from typing import Any

import numpy as np
import pytest

from lab.profiles.analysis.caller_text import call_text
from lab.profiles.analysis.frame_alignment import UnitedTree, align
from lab.profiles.analysis.frame_tree import build_tree
from lab.profiles.analysis.symbol_counts import Counts, callee_counts, caller_counts, symbol_counts

# Shaped like the kernfs mail: readers under two callers, one of them by way of a slow path.
MAIL = {
    ("open", "kernfs_dop_revalidate", "down_read"): 24,
    ("open", "kernfs_iop_permission", "down_read"): 10,
    ("open", "kernfs_iop_permission", "down_read", "rwsem_down_read_slowpath"): 5,
    ("open", "kernfs_iop_permission", "up_read"): 11,
    ("open", "memcpy"): 50,
}
ALL = np.array([True])


def united(*sides: dict[tuple[str, ...], int]) -> UnitedTree:
    return align([build_tree(side.items()) for side in sides])


def rows(counts: Counts) -> dict[str, Any]:
    return dict(zip(counts.names, counts.samples.tolist(), strict=True))


def test_the_samples_of_readers_split_by_caller_as_in_the_mail() -> None:
    split = caller_counts(united(MAIL, MAIL), ["down_read", "up_read"])
    assert split.total.tolist() == [[50, 50]]
    assert rows(split.by_caller) == {"kernfs_iop_permission": [26, 26], "kernfs_dop_revalidate": [24, 24]}
    (down, callers), (up, _) = split.by_symbol
    assert (down, up) == ("down_read", "up_read")
    assert rows(callers) == {"kernfs_dop_revalidate": [24, 24], "kernfs_iop_permission": [15, 15]}


def test_a_symbol_called_by_another_of_the_set_counts_once() -> None:
    split = caller_counts(united({("x", "down_read", "up_read"): 3, ("y",): 1}), ["down_read", "up_read"])
    assert split.total.tolist() == [[3]]
    assert rows(split.by_caller) == {"x": [3]}


def test_a_symbol_without_a_caller_is_told_so() -> None:
    assert rows(caller_counts(united({("down_read",): 1}), ["down_read"]).by_caller) == {"(no caller)": [1]}


def test_symbols_that_no_sample_holds_have_no_rows() -> None:
    split = caller_counts(united(MAIL), ["nothing"])
    assert (split.total.tolist(), split.by_caller.names, split.by_symbol) == ([[0]], (), ())
    assert callee_counts(united(MAIL), "nothing").names == ()
    assert symbol_counts(united({})).total.tolist() == [[0]]


def test_own_and_total_samples_count_a_recursive_symbol_once() -> None:
    tree = united({("a", "b", "a"): 1, ("a",): 3})
    counts = symbol_counts(tree)
    samples = {n: (counts.own[i, 0], counts.total[i, 0]) for i, n in enumerate(tree.names)}
    assert (samples["a"], samples["b"]) == ((4, 4), (0, 1))


def test_what_a_symbol_calls_and_spends_itself_adds_up_to_its_total() -> None:
    assert rows(callee_counts(united(MAIL), "down_read")) == {
        "(itself)": [34],
        "rwsem_down_read_slowpath": [5],
    }


def test_the_text_tree_has_the_mails_layout() -> None:
    chain = ("showgids", "do_syscall_64", "path_openat")
    stacks = {
        (*chain, "link_path_walk", "inode_permission", "kernfs_iop_permission", "down_read"): 2022,
        (*chain, "link_path_walk", "walk_component", "lookup_fast", "down_read"): 1506,
        (*chain, "link_path_walk", "other", "down_read"): 3,
        (*chain, "may_open", "down_read"): 125,
        ("showgids", "memcpy"): 6344,
    }
    assert call_text(united(stacks), ALL, "down_read").splitlines() == [
        "-   36.56%    36.56%  showgids  [kernel.kallsyms]  [k] down_read",
        "       36.56% do_syscall_64",
        "        - path_openat",
        "           - 35.31% link_path_walk",
        "              - 20.22% inode_permission",
        "                   kernfs_iop_permission",
        "                   down_read",
        "              - 15.06% walk_component",
        "                   lookup_fast",
        "                   down_read",
        "           - 1.25% may_open",
        "                down_read",
    ]


def test_the_text_tree_counts_what_a_symbol_calls_but_tells_its_own_share() -> None:
    head = call_text(united(MAIL), ALL, "down_read").splitlines()[0]
    assert head.split()[:3] == ["-", "39.00%", "34.00%"]


@pytest.mark.parametrize("symbol", ["nothing", "rare"])
def test_a_symbol_of_less_than_half_a_percent_has_no_text_tree(symbol: str) -> None:
    assert call_text(united({("a", "rare"): 1, ("a", "b"): 999}), ALL, symbol) == ""


def test_a_hostile_name_stays_on_its_line() -> None:
    text = call_text(united({("a\nb", "c\x1b[31m", "down_read"): 5}), ALL, "down_read")
    assert "\x1b" not in text
    assert len(text.splitlines()) == 3


def test_a_very_deep_stack_is_cut_in_the_text() -> None:
    deep = tuple(f"f{depth}" for depth in range(5000))
    assert len(call_text(united({(*deep, "down_read"): 5}), ALL, "down_read").splitlines()) < 250
