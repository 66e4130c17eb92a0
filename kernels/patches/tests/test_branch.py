# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import socket
import subprocess
from pathlib import Path

import pytest

from kernels.errors import PatchRejected, SourceUnreachable, UnknownRevision, UnknownTree
from kernels.patches.branch import SCRATCH, Branch, read_branch
from kernels.tests.serving import served
from kernels.tests.sources import make_archive
from kernels.trees import address
from kernels.trees.address import Address, own_address, public_address
from kernels.trees.git import COMMITTER, git_command, git_environment
from kernels.trees.remote import FetchLimits
from kernels.trees.tree import SourceTree, import_archive, open_git, resolve


class Fork:
    """Somebody's repository: a base with the tag v1, and the branch `work` with two commits over it."""

    def __init__(self, path: Path, files: dict[str, str]) -> None:
        self.path = path
        path.mkdir()
        self.git("init", "--quiet", "--template=", "--initial-branch=main")
        self.commit("old", {"README": "old\n"})
        self.commit("base", files)
        self.git("tag", "-a", "-m", "one", "v1")
        self.git("checkout", "--quiet", "-b", "work")
        self.commit("fs: first", {"fs/dir.c": "int dir = 1;\n"})
        self.commit("fs: second", {"fs/dir.c": "int dir = 2;\n"})

    def commit(self, message: str, files: dict[str, str]) -> None:
        for name, text in files.items():
            (self.path / name).parent.mkdir(parents=True, exist_ok=True)
            (self.path / name).write_text(text)
        self.git("add", "-A")
        self.git("commit", "--quiet", "-m", message)

    def git(self, *arguments: str) -> None:
        command = git_command("-C", str(self.path), *arguments)
        subprocess.run(command, env=git_environment(COMMITTER), check=True)

    def branch(self, name: str = "work", since: str = "") -> Branch:
        return Branch(own_address(str(self.path)), name, since)


@pytest.fixture
def fork(tmp_path: Path) -> Fork:
    return Fork(tmp_path / "fork", {"fs/dir.c": "int dir;\n"})


@pytest.fixture
def tree(fork: Fork, tmp_path: Path) -> SourceTree:
    """Our own clone of it, of before the branch was made."""
    tree = open_git("ours", own_address(str(fork.path)), tmp_path / "trees")
    subprocess.run(
        git_command(f"--git-dir={tree.repository}", "branch", "-D", "work"), check=True, capture_output=True
    )
    return tree


def titles(branch: Branch, tree: SourceTree, base: str) -> list[str]:
    return [patch.title for patch in read_branch(branch, tree, resolve(tree, base)).patches]


@pytest.mark.process
def test_a_branch_is_the_commits_it_has_over_the_base(fork: Fork, tree: SourceTree) -> None:
    assert titles(fork.branch(), tree, "v1") == ["fs: first", "fs: second"]


@pytest.mark.process
def test_a_branch_that_left_an_older_base_begins_where_it_left(fork: Fork, tree: SourceTree) -> None:
    fork.git("checkout", "--quiet", "main")
    fork.commit("newer", {"README": "newer\n"})
    tree = open_git("ours", own_address(str(fork.path)), tree.repository.parent)
    assert titles(fork.branch(), tree, "main") == ["fs: first", "fs: second"]


@pytest.mark.process
def test_a_branch_over_an_archive_is_counted_from_the_tag_of_the_same_name(
    fork: Fork, tmp_path: Path
) -> None:
    fork.git("tag", "-f", "v6.1.192", "v1^{}")
    tree = import_archive("archived", make_archive(tmp_path / "a.tar"), tmp_path / "trees")
    assert titles(fork.branch(), tree, "v6.1.192") == ["fs: first", "fs: second"]


@pytest.mark.process
def test_a_branch_may_say_after_which_revision_it_begins(
    fork: Fork, tree: SourceTree, tmp_path: Path
) -> None:
    fork.git("tag", "half", "work~1")
    assert titles(fork.branch(since="half"), tree, "v1") == ["fs: second"]
    archived = import_archive("archived", make_archive(tmp_path / "a.tar"), tmp_path / "trees")
    assert titles(fork.branch(since="v1"), archived, "v6.1.192") == ["fs: first", "fs: second"]


@pytest.mark.process
def test_a_branch_may_have_left_before_the_revision_after_which_it_begins(
    fork: Fork, tree: SourceTree
) -> None:
    fork.git("checkout", "--quiet", "main")
    fork.commit("newer", {"README": "newer\n"})
    fork.git("tag", "v2")
    assert titles(fork.branch(since="v2"), tree, "v1") == ["fs: first", "fs: second"]
    fork.git("checkout", "--quiet", "--orphan", "apart")
    fork.commit("apart", {"README": "apart\n"})
    with pytest.raises(PatchRejected, match=r"apart of .* shares no commit with v2"):
        titles(fork.branch("apart", since="v2"), tree, "v1")


@pytest.mark.process
def test_a_branch_without_anything_in_common_is_refused_with_the_way_out(fork: Fork, tmp_path: Path) -> None:
    tree = import_archive("archived", make_archive(tmp_path / "a.tar"), tmp_path / "trees")
    with pytest.raises(PatchRejected, match=r"shares no commit with v6\.1\.192.*say after which revision"):
        titles(fork.branch(), tree, "v6.1.192")


@pytest.mark.process
def test_an_unknown_branch_names_the_nearest(fork: Fork, tree: SourceTree) -> None:
    with pytest.raises(UnknownRevision, match=r'no branch "wrok". Did you mean "work"'):
        titles(fork.branch("wrok"), tree, "v1")
    with pytest.raises(UnknownRevision, match="no tag or branch"):
        titles(fork.branch(since="v9"), tree, "v1")


@pytest.mark.process
@pytest.mark.parametrize("name", ["--upload-pack=touch x", "a..b", "a b", "", "a:b", "-x", "x.lock"])
def test_a_name_that_git_could_misread_is_refused(fork: Fork, tree: SourceTree, name: str) -> None:
    with pytest.raises(UnknownRevision):
        titles(fork.branch(name or "+"), tree, "v1")


@pytest.mark.process
def test_a_branch_without_commits_of_its_own_is_refused(fork: Fork, tree: SourceTree) -> None:
    with pytest.raises(PatchRejected, match="adds no commits"):
        titles(fork.branch("main"), tree, "main")


@pytest.mark.process
def test_a_merge_is_refused(fork: Fork, tree: SourceTree) -> None:
    fork.git("checkout", "--quiet", "main")
    fork.commit("aside", {"README": "aside\n"})
    fork.git("checkout", "--quiet", "work")
    fork.git("merge", "--quiet", "--no-edit", "main")
    with pytest.raises(PatchRejected, match="holds the merge"):
        titles(fork.branch(), tree, "v1")


@pytest.mark.process
def test_a_branch_that_is_too_large_is_refused(fork: Fork, tree: SourceTree) -> None:
    large = "".join(f"{number * 7919 % 104729:x}" for number in range(200_000))
    fork.commit("large", {"blob.txt": large})
    with pytest.raises(PatchRejected, match="to fetch; upload its patches"):
        read_branch(fork.branch(), tree, resolve(tree, "v1"), FetchLimits(bytes=50_000))


@pytest.mark.process
def test_nothing_of_a_branch_stays(fork: Fork, tree: SourceTree) -> None:
    titles(fork.branch(), tree, "v1")
    assert list((tree.repository.parent / SCRATCH).iterdir()) == []


@pytest.mark.process
def test_a_place_where_nothing_is_is_told(tree: SourceTree, tmp_path: Path) -> None:
    with pytest.raises((UnknownTree, SourceUnreachable)):
        titles(Branch(Address("nowhere", str(tmp_path / "nowhere"), "file"), "work"), tree, "v1")


@pytest.mark.parametrize(
    ("location", "said"),
    [
        ("ssh://git@example.org/x", "begins with"),
        ("git@example.org:x", "begins with"),
        ("file:///etc", "begins with"),
        ("ext::sh -c date", "begins with"),
        ("/srv/linux", "begins with"),
        ("https://", "no host"),
        ("https://user:secret@example.org/x", "no user name"),
        ("https://exa mple.org/x", "begins with"),
        ("https://127.0.0.1/x", "closed network"),
        ("http://[::1]/x", "closed network"),
        ("http://10.1.2.3/x", "closed network"),
        ("http://169.254.169.254/latest", "closed network"),
        ("http://2130706433/x", "closed network"),
        ("http://[::ffff:127.0.0.1]/x", "closed network"),
        ("http://[64:ff9b::7f00:1]/x", "closed network"),
        ("http://[2002:7f00:1::]/x", "closed network"),
        ("http://224.0.0.1/x", "closed network"),
        ("git://0.0.0.0/x", "closed network"),
        ("https://example.org:99999/x", "not a git address"),
    ],
)
def test_an_address_that_is_not_plainly_public_is_refused(location: str, said: str) -> None:
    with pytest.raises(UnknownTree, match=said) as refused:
        public_address(location)
    assert "secret" not in str(refused.value)


def test_git_is_held_to_the_address_that_was_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address, "_addresses", lambda host, port: ["93.184.216.34"])
    remote = public_address("https://example.org/linux.git")
    assert remote.settings["http.curloptResolve"] == "example.org:443:93.184.216.34"
    assert public_address("git://example.org/linux.git").source == "git://93.184.216.34:9418/linux.git"


def test_one_closed_address_among_several_is_enough_to_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address, "_addresses", lambda host, port: ["93.184.216.34", "192.168.1.1"])
    with pytest.raises(UnknownTree, match="closed network"):
        public_address("https://rebinding.example.org/x")


def test_a_site_may_allow_closed_networks() -> None:
    assert public_address("http://10.1.2.3/x", private=True).source == "http://10.1.2.3/x"


@pytest.mark.process
def test_a_branch_is_fetched_over_http(fork: Fork, tree: SourceTree) -> None:
    with served(fork.path.parent) as root:
        remote = public_address(f"{root}/fork/.git", private=True)
        branch = Branch(remote, "work")
        assert titles(branch, tree, "v1") == ["fs: first", "fs: second"]
        with pytest.raises(UnknownTree, match="there is no git repository at"):
            titles(Branch(own_address(f"{root}/nothing.git"), "work"), tree, "v1")


@pytest.mark.process
def test_a_name_is_not_asked_for_a_second_time(
    fork: Fork, tree: SourceTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(fork.path.parent) as root:
        port = root.rpartition(":")[2]
        monkeypatch.setattr(address, "_addresses", lambda host, port: ["127.0.0.1"])
        branch = Branch(public_address(f"http://example.invalid:{port}/fork/.git", private=True), "work")
        assert titles(branch, tree, "v1") == ["fs: first", "fs: second"]


@pytest.mark.process
def test_a_server_that_hangs_ends_at_the_deadline(tree: SourceTree) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        branch = Branch(own_address(f"http://127.0.0.1:{silent.getsockname()[1]}/x"), "work")
        with pytest.raises(SourceUnreachable, match=r"did not answer within 1 s"):
            read_branch(branch, tree, resolve(tree, "v1"), FetchLimits(seconds=0.1))
