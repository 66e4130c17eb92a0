# SPDX-License-Identifier: GPL-2.0-or-later
"""One place's tree is not taken over by another place, and its tags stay where they are."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kernels.errors import UnknownTree
from kernels.tests.stranger import FILE, Stranger
from kernels.trees import remote
from kernels.trees.address import own_address
from kernels.trees.git import git_environment
from kernels.trees.remote import FetchLimits, location_name
from kernels.trees.tree import open_git, resolve

pytestmark = [pytest.mark.hostile, pytest.mark.process]


@pytest.fixture
def stranger(tmp_path: Path) -> Stranger:
    stranger = Stranger(tmp_path / "srv" / "linux.git")
    stranger.commit(stranger.plain())
    stranger.git("tag", "v6.1", "main")
    return stranger


class TestNames:
    def test_a_tree_is_not_taken_over_by_another_place(self, stranger: Stranger, tmp_path: Path) -> None:
        """Even where two locations were to get the same name."""
        tree = open_git("linux", own_address(str(stranger.path)), tmp_path / "trees")
        before = resolve(tree, "v6.1")
        evil = Stranger(tmp_path / "evil")
        evil.commit(evil.tree([(FILE, b"backdoor", evil.blob)]))
        evil.git("tag", "v6.1", "main")
        with pytest.raises(UnknownTree, match=r"^the tree linux is .*linux\.git, not .*evil"):
            open_git("linux", own_address(str(evil.path)), tmp_path / "trees")
        assert resolve(tree, "v6.1") == before
        assert resolve(tree, "main") == before.__class__(before.commit, before.tree_id, "main")

    def test_a_tree_of_an_older_release_remembers_its_place_by_gits_note(
        self, stranger: Stranger, tmp_path: Path
    ) -> None:
        (tmp_path / "trees").mkdir()
        old = tmp_path / "trees" / "linux.git"
        subprocess.run(
            ["git", "clone", "-q", "--bare", "--template=", str(stranger.path), str(old)],
            check=True,
            env=git_environment({"GIT_ALLOW_PROTOCOL": "file"}),
        )
        subprocess.run(["git", f"--git-dir={old}", "config", "kperflab.default", "main"], check=True)
        evil = Stranger(tmp_path / "evil")
        evil.commit(evil.plain())
        with pytest.raises(UnknownTree):
            open_git("linux", own_address(str(evil.path)), tmp_path / "trees")
        stranger.commit(stranger.plain(), "more")
        assert resolve(open_git("linux", own_address(str(stranger.path)), tmp_path / "trees"), "more")

    def test_a_tag_that_moves_there_stays_here_and_is_reported(
        self, stranger: Stranger, tmp_path: Path
    ) -> None:
        where, notes = own_address(str(stranger.path)), list[str]()
        tree = open_git("linux", where, tmp_path / "trees")
        before = resolve(tree, "v6.1").commit
        second = stranger.commit(stranger.tree([(FILE, b"backdoor", stranger.blob)]), "main", before)
        stranger.git("tag", "-f", "v6.1", second)
        open_git("linux", where, tmp_path / "trees", on_note=notes.append)
        assert resolve(tree, "v6.1").commit == before
        assert resolve(tree, "main").commit == second
        assert notes == [f"{stranger.path} has moved 1 of its tags (v6.1); here they stay where they were"]

    def test_names_of_trees_hold_the_whole_hash_of_their_place(self) -> None:
        names = {location_name(f"https://a/{number}/linux.git") for number in range(1000)}
        assert len(names) == 1000
        assert all(len(name.rpartition("-")[2]) == 64 and len(name) <= 100 for name in names)
        assert len(location_name(f"https://a/{'x' * 500}")) <= 100

    @pytest.mark.parametrize(
        "ref",
        [
            "refs/heads/../../config",
            "refs/heads/a..b",
            "refs/heads/.hidden",
            "refs/heads/a.lock",
            "refs/heads/a\x07b",
            "refs/heads/a b",
        ],
    )
    def test_a_branch_whose_name_is_a_path_is_left_out(
        self, ref: str, stranger: Stranger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        commit = stranger.git("rev-parse", "main")
        listing = f"ref: refs/heads/main\tHEAD\n{commit}\tHEAD\n{commit}\t{ref}\n{commit}\trefs/heads/main\n"
        monkeypatch.setattr(remote, "ask", lambda *_, **__: listing.encode())
        assert list(remote.list_refs(own_address("https://a/b"), FetchLimits()).refs) == ["refs/heads/main"]

    def test_a_repository_without_a_branch_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(UnknownTree, match="has no branches and no tags"):
            open_git("theirs", own_address(str(Stranger(tmp_path / "empty").path)), tmp_path / "trees")
