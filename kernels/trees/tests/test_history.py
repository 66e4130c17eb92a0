# SPDX-License-Identifier: GPL-2.0-or-later
"""The line of first parents: places, headings, and ranges that are none."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kernels.errors import UnknownRevision
from kernels.trees.history import line, logged, merges
from kernels.trees.tree import SourceTree, resolve

pytestmark = pytest.mark.process


def git(work: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    subprocess.run(["git", "-C", str(work), *identity, *arguments], check=True, capture_output=True)


@pytest.fixture
def tree(tmp_path: Path) -> SourceTree:
    git(tmp_path, "init", "-q", "-b", "main")
    for subject in ("one", "two", "three \x1b[31m", "four"):
        git(tmp_path, "commit", "-q", "--allow-empty", "-m", subject)
        git(tmp_path, "tag", subject.split()[0])
    git(tmp_path, "checkout", "-q", "-b", "side", "two")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "aside")
    git(tmp_path, "checkout", "-q", "main")
    git(tmp_path, "merge", "-q", "--no-ff", "-m", "merged", "side")
    return SourceTree("tiny", tmp_path / ".git", "main")


def test_a_line_has_its_commits_in_order_with_their_places(tree: SourceTree) -> None:
    commits = line(tree, resolve(tree, "one"), resolve(tree, "main"))
    assert [commit.subject for commit in commits] == ["two", r"three \x1b[31m", "four", "merged"]
    assert [commit.position for commit in commits] == [1, 2, 3, 4]
    assert commits[0].author == "Ann <ann@example.org>"
    assert logged(tree, commits[2].commit) == commits[2]
    assert logged(tree, resolve(tree, "one").commit).position == 0


def test_merges_are_counted(tree: SourceTree) -> None:
    assert merges(tree, resolve(tree, "one"), resolve(tree, "four")) == 0
    assert merges(tree, resolve(tree, "one"), resolve(tree, "main")) == 1


@pytest.mark.parametrize(("start", "end"), [("four", "one"), ("one", "one"), ("side", "four")])
def test_a_range_whose_start_is_not_before_its_end_is_refused(tree: SourceTree, start: str, end: str) -> None:
    with pytest.raises(UnknownRevision, match="name the older one first"):
        line(tree, resolve(tree, start), resolve(tree, end))
