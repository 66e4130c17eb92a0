# SPDX-License-Identifier: GPL-2.0-or-later
"""Branches and ranges whose commits are too large to compare, or no trees at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernels.errors import PatchRejected, TreeUnreadable
from kernels.patches import series as patch
from kernels.patches.branch import Branch, read_branch
from kernels.patches.series import read_range
from kernels.tests.stranger import FILE, FOLDER, Stranger
from kernels.trees import listing
from kernels.trees.address import own_address
from kernels.trees.tree import SourceTree, open_git, resolve

pytestmark = [pytest.mark.hostile, pytest.mark.process]


def bomb(stranger: Stranger) -> str:
    """A tree of some KiB that names ten thousand million files."""
    made = stranger.tree([(FILE, b"%d" % number, stranger.blob) for number in range(10)])
    for _ in range(9):
        made = stranger.tree([(FOLDER, b"%d" % number, made) for number in range(10)])
    return made


@pytest.fixture
def stranger(tmp_path: Path) -> Stranger:
    return Stranger(tmp_path / "srv")


@pytest.mark.parametrize("end", ["tip", "base"])
def test_a_range_that_ends_in_a_tree_without_an_end_is_refused(
    end: str, stranger: Stranger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "MOST_LISTED", 1 << 20)
    trees = [stranger.plain(), bomb(stranger)]
    first, second = trees if end == "tip" else reversed(trees)
    base = stranger.commit(first, "base")
    stranger.commit(second, "main", base)
    with pytest.raises(TreeUnreadable, match="more than 400,000 files"):
        read_range(SourceTree("t", stranger.path, "main"), "base", "main")


def test_a_bomb_between_two_harmless_commits_ends_at_the_limit_of_memory(
    stranger: Stranger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patch, "RANGE_MEMORY", 64 << 20)
    base = stranger.commit(stranger.plain(), "base")
    between = stranger.commit(bomb(stranger), "between", base)
    stranger.commit(stranger.tree([(FILE, b"Makefile", stranger.blob)]), "main", between)
    with pytest.raises(PatchRejected, match=r"base\.\.main needs more than 64 MiB to be written as patches"):
        read_range(SourceTree("t", stranger.path, "main"), "base", "main")


def test_patches_that_are_larger_than_a_submission_are_refused(stranger: Stranger) -> None:
    base = stranger.commit(stranger.plain(), "base")
    text = b"".join(b"%d\n" % number for number in range(3_000_000))
    large = stranger.object("blob", text)
    stranger.commit(
        stranger.tree([(FILE, b"Makefile", stranger.blob), (FILE, b"large", large)]), "main", base
    )
    with pytest.raises(
        PatchRejected, match=r"base\.\.main is more than 16 MiB as patches; name a shorter range"
    ):
        read_range(SourceTree("t", stranger.path, "main"), "base", "main")


def test_a_branch_of_a_malformed_tree_is_refused_by_its_fetch(stranger: Stranger, tmp_path: Path) -> None:
    base = stranger.commit(stranger.plain())
    tree = open_git("ours", own_address(str(stranger.path)), tmp_path / "trees")
    stranger.commit(stranger.tree([(FILE, b"..", stranger.blob)]), "evil", base)
    with pytest.raises(TreeUnreadable, match="git finds malformed objects in it"):
        read_branch(Branch(own_address(str(stranger.path)), "evil"), tree, resolve(tree, base))
    assert list((tmp_path / "trees" / ".branches").iterdir()) == []
