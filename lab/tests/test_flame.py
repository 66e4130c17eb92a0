# SPDX-License-Identifier: GPL-2.0-or-later
import pytest

from lab.analysis.flame import (
    caller_shares,
    flame_tree,
    normalise,
    normalise_stacks,
    read_folded,
    symbol_shares,
    without_idle,
    write_folded,
)

# Shaped like the kernfs mail: readers under two callers, one of them by way of a slow path.
FOLDED = {
    ("open", "kernfs_dop_revalidate", "down_read"): 24,
    ("open", "kernfs_iop_permission", "down_read"): 10,
    ("open", "kernfs_iop_permission", "down_read", "rwsem_down_read_slowpath"): 5,
    ("open", "kernfs_iop_permission", "up_read"): 11,
    ("open", "memcpy"): 50,
}


@pytest.mark.parametrize(
    ("symbol", "source"),
    [
        ("down_read", "down_read"),
        ("foo.isra.0", "foo"),
        ("foo.constprop.12", "foo"),
        ("foo.part.3.cold", "foo"),
        ("foo.isra.0.cold", "foo"),
        ("foo.cold", "foo"),
        ("[k] 0xffff.isra", "[k] 0xffff"),
        ("isra_of_mine", "isra_of_mine"),
    ],
)
def test_copies_the_compiler_made_bear_the_name_of_the_source(symbol: str, source: str) -> None:
    assert normalise(symbol) == source


def test_stacks_that_differ_in_copies_only_are_added_up() -> None:
    assert normalise_stacks({("a", "b.isra.0"): 1, ("a", "b"): 2}) == {("a", "b"): 3}


def test_the_shares_of_readers_split_by_caller_as_in_the_mail() -> None:
    split = caller_shares(FOLDED, {"down_read", "up_read"})
    assert split.total == pytest.approx(0.50)
    assert [(c.caller, round(c.share, 2)) for c in split.by_caller] == [
        ("kernfs_iop_permission", 0.26),
        ("kernfs_dop_revalidate", 0.24),
    ]
    down, up = split.by_symbol
    assert (down[0], round(down[1], 2)) == ("down_read", 0.39)
    assert [(c.caller, round(c.share, 2)) for c in up[2]] == [("kernfs_iop_permission", 0.11)]


def test_a_symbol_called_by_another_of_the_set_counts_once() -> None:
    split = caller_shares({("x", "down_read", "up_read"): 3, ("y",): 1}, {"down_read", "up_read"})
    assert split.total == pytest.approx(0.75)
    assert [c.caller for c in split.by_caller] == ["x"]


def test_a_symbol_without_a_caller_is_told_so() -> None:
    assert caller_shares({("down_read",): 1}, {"down_read"}).by_caller[0].caller == "(no caller)"


def test_no_samples_have_no_shares() -> None:
    assert caller_shares({}, {"down_read"}).total == 0.0
    assert symbol_shares({}) == {}
    assert flame_tree({})["value"] == 0


def test_own_and_total_shares_count_a_recursive_symbol_once() -> None:
    shares = symbol_shares({("a", "b", "a"): 1, ("a",): 3})
    assert (shares["a"].own, shares["a"].total) == (1.0, 1.0)
    assert (shares["b"].own, shares["b"].total) == (0.0, 0.25)


def test_a_flame_tree_adds_up_and_is_sorted_by_size() -> None:
    tree = flame_tree(FOLDED)
    (top,) = tree["children"]
    assert (tree["value"], top["name"], top["value"]) == (100, "open", 100)
    assert [child["name"] for child in top["children"]] == [
        "memcpy",
        "kernfs_iop_permission",
        "kernfs_dop_revalidate",
    ]


def test_thin_frames_are_left_out_but_still_count_in_their_parents() -> None:
    (top,) = flame_tree(FOLDED, least=0.3)["children"]
    assert [(child["name"], child["value"]) for child in top["children"]] == [("memcpy", 50)]
    assert top["value"] == 100


def test_a_very_deep_stack_does_not_overflow() -> None:
    deep = tuple(f"f{depth}" for depth in range(5000))
    assert flame_tree({deep: 1})["value"] == 1


def test_folded_stacks_survive_writing_and_reading() -> None:
    odd = {("a;b", "c d"): 2, ("x",): 1}
    assert read_folded(write_folded(odd)) == {("a:b", "c d"): 2, ("x",): 1}


@pytest.mark.parametrize("line", ["main", "main x", "main -1", " 5"])
def test_a_line_that_is_no_folded_stack_is_named(line: str) -> None:
    with pytest.raises(ValueError, match="line 2"):
        read_folded(f"main 1\n{line}\n")


def test_an_idle_cpu_is_left_out_but_an_interrupt_it_takes_is_not() -> None:
    idle = ("swapper", "start_secondary", "cpu_startup_entry", "do_idle", "default_idle_call")
    taken = ("swapper", "do_idle", "asm_sysvec_apic_timer_interrupt", "handle_softirqs")
    busy = ("showgids", "do_syscall_64", "path_openat")
    assert without_idle({idle: 5, taken: 2, busy: 3}) == {taken: 2, busy: 3}
