# SPDX-License-Identifier: GPL-2.0-or-later
"""The functions that a diff touches are read from the diff alone."""

from __future__ import annotations

import pytest

from kernels.diffs.touched_functions import defined_function, touched_functions


def diff(*hunks: str, path: str = "fs/a.c") -> str:
    return f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n" + "".join(hunks)


def names(text: str) -> list[str]:
    return [function.name for function in touched_functions(text)]


def test_a_changed_line_belongs_to_the_function_in_the_hunks_header() -> None:
    hunk = (
        "@@ -386,3 +386,3 @@ static int link_sibling(struct node *kn)\n \ta();\n-\tb();\n+\tc();\n \td();\n"
    )
    assert names(diff(hunk)) == ["link_sibling"]


def test_a_function_that_ends_inside_the_hunk_is_not_touched_by_what_follows() -> None:
    hunk = "@@ -1,4 +1,5 @@ static int before(void)\n \treturn 0;\n }\n \n+int global;\n \n"
    assert names(diff(hunk)) == []


def test_a_function_defined_inside_the_hunk_is_named_though_the_header_names_another() -> None:
    hunk = (
        "@@ -1,6 +1,7 @@ static int before(void)\n \treturn 0;\n }\n \n"
        " static struct inode *find(struct super_block *sb,\n \t\t\t  long ino)\n {\n+\tlock();\n"
    )
    assert names(diff(hunk)) == ["find"]


def test_a_new_and_a_removed_function_are_touched() -> None:
    hunk = "@@ -1,3 +1,4 @@\n-static void old(void)\n-{\n-}\n+int fresh(int a)\n+{\n+\treturn a;\n+}\n"
    assert names(diff(hunk)) == ["old", "fresh"]


def test_a_function_changed_in_two_hunks_is_named_once() -> None:
    hunk = "@@ -{0},1 +{0},2 @@ int twice(void)\n \ta();\n+\tb();\n"
    (function,) = touched_functions(diff(hunk.format(10), hunk.format(30)))
    assert function.name == "twice"
    assert [text.splitlines()[0] for text in function.hunks] == [
        "@@ -10,1 +10,2 @@ int twice(void)",
        "@@ -30,1 +30,2 @@ int twice(void)",
    ]
    assert function.hunks[0].endswith(" \ta();\n+\tb();")


def test_a_system_call_is_named_as_its_symbol() -> None:
    hunk = "@@ -5,1 +5,2 @@ SYSCALL_DEFINE3(openat2, int, dfd, const char __user *, filename)\n \ta();\n+\tb();\n"
    assert names(diff(hunk)) == ["__do_sys_openat2"]


def test_files_that_are_no_c_have_no_functions() -> None:
    assert names(diff("@@ -1,1 +1,2 @@ config FOO(\n a\n+b\n", path="fs/Kconfig")) == []


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("static inline void __iget(struct inode *inode)", "__iget"),
        ("struct inode *iget_locked(struct super_block *sb, unsigned long ino)", "iget_locked"),
        ("int declared(void);", ""),
        ("EXPORT_SYMBOL(iget_locked)", ""),
        ("\tcall(a);", ""),
        ("out_unlock:", ""),
        ("static DEFINE_SPINLOCK(x);", ""),
        ("struct kernfs_node {", ""),
        ("", ""),
    ],
)
def test_a_line_that_begins_a_definition_is_told_from_others(line: str, name: str) -> None:
    assert defined_function(line) == name
