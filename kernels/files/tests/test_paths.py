# SPDX-License-Identifier: GPL-2.0-or-later
"""Paths that a stranger's tree names: which are taken, and which of them claim the same place."""

import random

import pytest

from kernels.errors import TreeUnreadable
from kernels.files import paths
from kernels.files.paths import check_path, check_paths

pytestmark = pytest.mark.hostile


GOOD = [
    "Makefile",
    "fs/inode.c",
    'tools/a "quoted\\" name.c',
    "tools/grüße.c",
    "a.git",
    ".gitignore",
    "..a",
    "a..",
    "git",
    "x~1",
    "\udcff",
]


@pytest.mark.parametrize("path", GOOD)
def test_an_ordinary_path_is_taken(path: str) -> None:
    check_path(path)


def test_the_quick_look_at_a_path_agrees_with_the_look_at_each_of_its_parts() -> None:
    chance, seen = random.Random(1), set[bool]()
    pieces = [*"_/+-:\\\0é", " ", ".", "..", "//", "a", "Z9", ".git", "GIT~1", "git~12", "\u200c", "x" * 130]
    for _ in range(20_000):
        path = "".join(chance.choices(pieces, k=chance.randrange(1, 6)))
        quick = len(path) <= paths.LONGEST_NAME and bool(paths._PLAIN.fullmatch(path))
        refused = (
            any(paths._part_problem(part) for part in path.split("/")) or path.startswith("/") or "\0" in path
        )
        assert not (quick and refused), path
        seen.add(quick)
    assert seen == {False, True}


@pytest.mark.parametrize(
    ("named", "said"),
    [
        (["a", "a"], '"a" twice'),
        (["a", "a/b"], '"a" as a file and as a folder'),
        (["a/b", "a"], '"a" as a file and as a folder'),
        (["a/b/c", "x", "a/b"], '"a/b" as a file and as a folder'),
        (["a/b", "a/b/c/d"], '"a/b" as a file and as a folder'),
        (["ok", "a\0b"], "which has a NUL byte"),
        (["\x1b[2J/../x"], r"\\x1b\[2J"),
    ],
)
def test_paths_that_cannot_all_be_written_are_refused(named: list[str], said: str) -> None:
    with pytest.raises(TreeUnreadable, match=said) as refused:
        check_paths(named)
    assert str(refused.value).isprintable()
