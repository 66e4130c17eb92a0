# SPDX-License-Identifier: GPL-2.0-or-later
"""The branch of a commit, by first parents, and where it forked off the default branch."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kernels.trees.branches import BranchPlace, branch_place, place_on_branch
from kernels.trees.tests.test_history import git
from kernels.trees.tree import SourceTree, resolve

pytestmark = pytest.mark.process


@pytest.fixture
def tree(tmp_path: Path) -> SourceTree:
    """main: one, two, three, merged (topic). stable: two, s1, s2. vendor: two, s1, v1. topic: three, t1."""
    git(tmp_path, "init", "-q", "-b", "main")
    _commit(tmp_path, "one", "two")
    git(tmp_path, "checkout", "-q", "-b", "stable")
    _commit(tmp_path, "s1")
    git(tmp_path, "checkout", "-q", "-b", "vendor")
    _commit(tmp_path, "v1")
    git(tmp_path, "checkout", "-q", "stable")
    _commit(tmp_path, "s2")
    git(tmp_path, "checkout", "-q", "main")
    _commit(tmp_path, "three")
    git(tmp_path, "checkout", "-q", "-b", "topic")
    _commit(tmp_path, "t1")
    git(tmp_path, "checkout", "-q", "main")
    git(tmp_path, "merge", "-q", "--no-ff", "-m", "merged", "topic")
    git(tmp_path, "tag", "merged")
    return SourceTree("tiny", tmp_path / ".git", "main")


def _commit(work: Path, *subjects: str) -> None:
    for subject in subjects:
        git(work, "commit", "-q", "--allow-empty", "-m", subject)
        git(work, "tag", subject)


@pytest.mark.parametrize(
    ("revision", "branch", "fork"),
    [
        *((revision, "", None) for revision in ("one", "two", "three", "merged", "main")),
        ("s1", "stable", 1),
        ("s2", "stable", 1),
        ("v1", "vendor", 1),
        # It was merged, but is no first parent of the default branch.
        ("t1", "topic", 2),
    ],
)
def test_a_commit_belongs_to_the_line_of_first_parents_that_holds_it(
    tree: SourceTree, revision: str, branch: str, fork: int | None
) -> None:
    place = branch_place(tree, resolve(tree, revision).commit)
    assert (place, place.known) == (BranchPlace(branch, fork), True)


def test_of_several_branches_the_preferred_one_is_named(tree: SourceTree) -> None:
    commit = resolve(tree, "s1").commit
    assert branch_place(tree, commit, ["gone", "vendor"]).branch == "vendor"
    # One that does not hold the commit is not.
    assert branch_place(tree, resolve(tree, "s2").commit, ["vendor"]).branch == "stable"


def test_a_commit_that_no_branch_holds_has_none(tree: SourceTree) -> None:
    git(tree.repository.parent, "branch", "-D", "topic")
    place = branch_place(tree, resolve(tree, "t1").commit)
    assert (place, place.known, place.branch_at(3)) == (BranchPlace(), False, None)


def test_a_branch_without_a_common_commit_has_no_fork(tree: SourceTree) -> None:
    work = tree.repository.parent
    git(work, "checkout", "-q", "--orphan", "other")
    _commit(work, "o1", "o2")
    assert branch_place(tree, resolve(tree, "o2").commit) == BranchPlace("other", None)


def test_a_shallow_history_without_branches_has_no_branch(tree: SourceTree, tmp_path: Path) -> None:
    place = tmp_path / "shallow"
    url = f"file://{tree.repository.parent}"
    subprocess.run(
        ["git", "clone", "-q", "--bare", "--depth=1", "--branch=s2", url, str(place)],
        check=True,
        capture_output=True,
    )
    shallow = SourceTree("tiny", place, resolve(tree, "one").commit)
    assert branch_place(shallow, resolve(tree, "s2").commit) == BranchPlace()


def test_a_commit_of_a_named_branch_is_placed_on_it_even_where_the_default_branch_holds_it(
    tree: SourceTree,
) -> None:
    two, end = resolve(tree, "two").commit, resolve(tree, "s2").commit
    assert place_on_branch(tree, two, "stable") == BranchPlace("stable", 1)
    place = place_on_branch(tree, end, "stable")
    assert place == BranchPlace("stable", 1)
    # Commits up to the fork are of both; they are named by the default branch.
    assert [place.branch_at(position) for position in range(4)] == ["", "", "stable", "stable"]
    assert place_on_branch(tree, two, "main") == place_on_branch(tree, two, "") == BranchPlace()
