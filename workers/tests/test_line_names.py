# SPDX-License-Identifier: GPL-2.0-or-later
"""Cache lines and locks have names that a kernel developer can look up."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from workers.collect.waiting_reader import chain
from workers.microscope.calltree import CallTree
from workers.microscope.contention import LineWaits, LockWaits, WaitShare
from workers.microscope.line_names import LineNames
from workers.microscope.lock_functions import is_lock_function

SYSTEM_MAP = """\
0000000000000000 D fixed_percpu_data
ffffffff81000000 T _stext
ffffffff82200000 D jiffies
ffffffff82200010 d spare
ffffffff82200040 D inode_hash_lock
ffffffff82200044 b inode_hashtable
ffffffff82200100 B init_task
ffffffff82201000 T __init_begin
ffffffff82300000 B _end
"""
TREE = CallTree(
    names=("[unknown]", "", "[kernel threads]", "[interrupts]", "kernfs_dop_revalidate", "down_read", "generic_permission"),
    parent=np.array([-1, -1, -1, -1, 1, 4, 1]),
    instructions=np.zeros(7, np.int64),
    calls=np.zeros(7, np.int64),
    windows=1,
)  # fmt: skip


def line(address: int, *nodes: int) -> LineWaits:
    shares = tuple(WaitShare(node, 1, 1) for node in nodes)
    return LineWaits(address, 1, 1, 0, 2, 1, False, shares)


@pytest.mark.parametrize(
    ("address", "name"),
    [
        (0xFFFFFFFF82200000, "jiffies, spare"),
        (0xFFFFFFFF82200040, "inode_hash_lock, inode_hashtable"),
        (0xFFFFFFFF82200080, "inode_hashtable+0x3c"),
        (0xFFFFFFFF82200140, "init_task+0x40"),
        # Code, what lies behind the image, and what is not static.
        (0xFFFFFFFF81000000, "static data of generic_permission"),
        (0xFFFFFFFF82201040, "static data of generic_permission"),
        (0xFFFFFFFF82300000, "static data of generic_permission"),
        (0xFFFFFFFFC0200000, "static data of generic_permission"),
        (0xFFFF888000159340, "kernel memory of generic_permission"),
        (0xFFFFC90000013F40, "stack or vmalloc memory of generic_permission"),
        (1 << 62, "program memory of generic_permission"),
    ],
)
def test_a_line_is_named_by_what_is_static_in_it(address: int, name: str) -> None:
    assert LineNames(SYSTEM_MAP, partial(chain, TREE)).line(line(address, 6)) == name


def test_a_line_of_a_lock_is_named_by_who_calls_the_lock_function() -> None:
    name = LineNames(SYSTEM_MAP, partial(chain, TREE)).line(line(0xFFFF888000159340, 5, 6, 5))
    assert name == "kernel memory of kernfs_dop_revalidate → down_read, generic_permission"


def test_a_line_that_no_node_is_known_of_has_a_name_too() -> None:
    assert (
        LineNames("", partial(chain, TREE)).line(line(0xFFFF888000159340)) == "kernel memory of nobody known"
    )


@pytest.mark.parametrize(
    ("address", "name"),
    [
        (0xFFFFFFFF82200040, "inode_hash_lock"),
        (0xFFFFFFFF82200104, "init_task+0x4"),
        (0xFFFF888000159340, "mutex of kernfs_dop_revalidate → down_read"),
    ],
)
def test_a_lock_is_named_by_its_own_address(address: int, name: str) -> None:
    lock = LockWaits(address, "mutex", 1, 1, 1, (WaitShare(5, 1, 1),))
    assert LineNames(SYSTEM_MAP, partial(chain, TREE)).lock(lock) == name


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("down_read", True), ("__mutex_lock.constprop.0", True), ("_raw_spin_lock_irqsave", True), ("lockref_put_return", True),
        ("generic_permission", False), ("down_payment", False), ("", False),
    ],
)  # fmt: skip
def test_lock_functions_are_told_from_others(name: str, is_one: bool) -> None:
    assert is_lock_function(name) is is_one
