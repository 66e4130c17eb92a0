# SPDX-License-Identifier: GPL-2.0-or-later
"""The names of a profile that are kernel functions, and their lines as they are kept beside it."""

from __future__ import annotations

from lab.profiles.analysis.frame_tree import build_tree
from lab.profiles.analysis.source_lines import by_source_name, kernel_functions, merged_lines, pack_lines


def test_a_command_is_no_function_of_the_kernel() -> None:
    tree = build_tree([(("walk", "open", "down_read"), 3), (("walk", "[libc.so]"), 1)])
    assert kernel_functions(tree, exact=False) == {"open", "down_read", "[libc.so]"}


def test_a_programs_functions_are_not_the_kernels_of_the_same_name() -> None:
    tree = build_tree(
        [
            (("main", "strcmp"), 1),
            (("main", "open64", "entry_SYSCALL_64", "do_sys_open", "strcmp"), 2),
            (("main", "asm_exc_page_fault", "handle_mm_fault"), 3),
            (("[interrupts]", "tick"), 4),
        ]
    )
    functions = kernel_functions(tree, exact=True)
    assert {"do_sys_open", "handle_mm_fault", "tick"} <= functions
    assert not {"main", "open64", "strcmp"} & functions


def test_lines_are_kept_by_the_names_of_the_source() -> None:
    lines = {
        "walk.part.0.cold": "fs/namei.c:99",
        "walk.part.0": "fs/namei.c:20",
        "open": "fs/open.c:1",
        "open.isra.0": "fs/open.c:7",
        "cut.cold": "fs/open.c:9",
    }
    assert by_source_name(lines) == {"walk": "fs/namei.c:20", "open": "fs/open.c:1"}


def test_what_is_stored_comes_back_and_the_first_table_wins() -> None:
    stored = [
        pack_lines({"open": "fs/open.c:1"}),
        None,
        pack_lines({"open": "fs/open.c:2", "new": "fs/open.c:9"}),
    ]
    assert merged_lines(stored) == {"open": "fs/open.c:1", "new": "fs/open.c:9"}
    assert pack_lines({}) is None
    assert merged_lines([]) == {}
