# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

import pytest

from kernels.errors import (
    GitFailed,
    SourceUnreachable,
    UnknownPath,
    UnknownRevision,
    UnknownTree,
)
from kernels.tests.sources import FILES, MAKEFILE, make_archive
from kernels.trees.address import own_address
from kernels.trees.extract import changed_files, extract_changes, extract_tree
from kernels.trees.git import run_git
from kernels.trees.remote import location_name
from kernels.trees.tree import (
    SourceTree,
    import_archive,
    is_imported,
    make_bare,
    open_git,
    open_tree,
    read_file,
    resolve,
)

pytestmark = pytest.mark.process

# The id of FILES as a commit. If this changes, every machine's stored builds and experiments lose their base.
COMMIT = "359fe02a8496fffb3a89b2a97fdc33dd67ebee73"


def git(directory: Path, *arguments: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=topic"]
    done = subprocess.run(
        ["git", *who, *arguments], cwd=directory, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    """A repository of somebody's own, with a hook that would leave a trace."""
    directory = tmp_path / "upstream"
    directory.mkdir()
    git(directory, "init", "-q")
    (directory / "Makefile").write_bytes(MAKEFILE)
    git(directory, "add", ".")
    git(directory, "commit", "-qm", "one")
    git(directory, "tag", "v6.1.192")
    return directory


def test_a_loose_object_is_on_the_disk_before_it_has_its_name(tmp_path: Path) -> None:
    make_bare(tmp_path / "tree.git")
    trace = tmp_path / "trace"
    run_git(
        tmp_path / "tree.git", "hash-object", "-w", "--stdin", environment={"GIT_TRACE2_EVENT": str(trace)}
    )
    assert '"key":"fsync/hardware-flush","value":"1"' in trace.read_text()


class TestGit:
    def test_a_path_is_cloned_with_branches_and_tags_and_its_head_is_the_default(
        self, upstream: Path, tmp_path: Path
    ) -> None:
        tree = open_git("mine", own_address(str(upstream)), tmp_path / "trees")
        assert tree.default_revision == "topic"
        assert (
            resolve(tree, "").commit == resolve(tree, "v6.1.192").commit == git(upstream, "rev-parse", "HEAD")
        )

    def test_a_clone_tells_how_much_of_it_is_done_and_a_fetch_of_nothing_tells_nothing(
        self, upstream: Path, tmp_path: Path
    ) -> None:
        reported: list[tuple[str, float]] = []

        def tell(stage: str, done: float) -> None:
            reported.append((stage, done))

        open_git("mine", own_address(str(upstream)), tmp_path / "trees", on_progress=tell)
        assert reported[-1][1] == 1.0
        assert {stage for stage, _ in reported} <= {"receiving objects", "resolving deltas"}
        amount = len(reported)
        open_git("mine", own_address(str(upstream)), tmp_path / "trees", on_progress=tell)
        assert len(reported) == amount

    def test_a_second_call_brings_what_is_new_and_drops_what_is_gone(
        self, upstream: Path, tmp_path: Path
    ) -> None:
        open_git("mine", own_address(str(upstream)), tmp_path / "trees")
        git(upstream, "commit", "-q", "--amend", "-m", "rewritten")
        git(upstream, "branch", "fresh")
        git(upstream, "tag", "-d", "v6.1.192")
        tree = open_git("mine", own_address(str(upstream)), tmp_path / "trees")
        assert resolve(tree, "fresh").commit == resolve(tree, "").commit == git(upstream, "rev-parse", "HEAD")
        with pytest.raises(UnknownRevision):
            resolve(tree, "v6.1.192")

    @pytest.mark.parametrize("names", [("next", "next/fixes"), ("next/fixes", "next")])
    def test_a_branch_may_be_renamed_to_a_name_below_or_above_its_own(
        self, names: tuple[str, str], upstream: Path, tmp_path: Path
    ) -> None:
        """git stores a branch as a file: it has no room for one below it while the first is there."""
        before, after = names
        git(upstream, "branch", before)
        open_git("ours", own_address(str(upstream)), tmp_path / "trees")
        git(upstream, "branch", "-m", before, after)
        git(upstream, "commit", "-q", "--allow-empty", "-m", "more")
        tree = open_git("ours", own_address(str(upstream)), tmp_path / "trees")
        assert resolve(tree, after).commit == git(upstream, "rev-parse", after)
        assert resolve(tree, "topic").commit == git(upstream, "rev-parse", "topic")
        with pytest.raises(UnknownRevision):
            resolve(tree, before)

    def test_a_detached_head_is_the_default_by_its_id(self, upstream: Path, tmp_path: Path) -> None:
        git(upstream, "checkout", "-q", "--detach")
        git(upstream, "commit", "-q", "--allow-empty", "-m", "on no branch")
        assert open_git("mine", own_address(str(upstream)), tmp_path).default_revision == git(
            upstream, "rev-parse", "HEAD"
        )

    def test_a_default_branch_that_is_renamed_is_the_default_by_its_new_name(
        self, upstream: Path, tmp_path: Path
    ) -> None:
        open_git("mine", own_address(str(upstream)), tmp_path / "trees")
        git(upstream, "branch", "other")
        git(upstream, "branch", "-m", "topic", "main")
        git(upstream, "commit", "-q", "--allow-empty", "-m", "two")
        tree = open_git("mine", own_address(str(upstream)), tmp_path / "trees")
        assert tree.default_revision == "main"
        assert resolve(tree, "").commit == git(upstream, "rev-parse", "HEAD")
        git(upstream, "checkout", "-q", "other")
        assert open_git("mine", own_address(str(upstream)), tmp_path / "trees").default_revision == "main"

    def test_hooks_of_the_repository_do_not_come_along(self, upstream: Path, tmp_path: Path) -> None:
        tree = open_git("mine", own_address(str(upstream)), tmp_path / "trees")
        assert not (tree.repository / "hooks").exists()

    @pytest.mark.parametrize(
        "location",
        [
            "--upload-pack=touch /tmp/pwned",
            "ext::sh -c 'touch /tmp/pwned'",
            "file:///etc",
            "fd::3",
            "https://-oProxyCommand=x",
            "ssh://-oProxyCommand=touch/x",
            "-oProxyCommand=x@host:y",
            "/nonexistent/linux.git",
            "https://host/a b",
            "",
        ],
    )
    def test_a_hostile_location_is_refused_before_git_sees_it(
        self, tmp_path: Path, location: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("kernels.trees.remote.try_git", lambda *_, **__: pytest.fail("git was called"))
        with pytest.raises(UnknownTree, match="git repository"):
            open_git("mine", own_address(location), tmp_path)

    @pytest.mark.parametrize(
        ("location", "protocol"),
        [
            ("https://git.kernel.org/pub/linux.git", "https"),
            ("git@example.org:linux.git", "ssh"),
            ("git://example.org/l", "git"),
        ],
    )
    def test_urls_allow_their_own_protocol_only(self, location: str, protocol: str) -> None:
        address = own_address(location)
        assert (address.source, address.protocol) == (location, protocol)

    def test_a_directory_named_like_an_option_becomes_an_absolute_path(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "ext::x").mkdir()
        monkeypatch.chdir(tmp_path)
        address = own_address("ext::x")
        assert (address.source, address.protocol) == (str(tmp_path / "ext::x"), "file")

    def test_a_directory_without_a_repository_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "plain").mkdir()
        with pytest.raises(UnknownTree, match=r"no git repository at .*plain"):
            open_git("mine", own_address(str(tmp_path / "plain")), tmp_path / "trees")
        assert not (tmp_path / "trees" / "mine.git").exists()

    def test_a_server_that_does_not_answer_may_be_tried_again_and_its_password_is_not_shown(
        self, tmp_path: Path
    ) -> None:
        with pytest.raises(SourceUnreachable) as caught:
            open_git("mine", own_address("http://me:secret@127.0.0.1:1/linux.git"), tmp_path)
        assert caught.value.retry
        assert "secret" not in str(caught.value) + caught.value.detail

    def test_unnamed_locations_get_names_of_their_own(self) -> None:
        names = {
            location_name(where) for where in ("https://a/linux.git", "https://b/linux.git", "/src/linux/")
        }
        assert len(names) == 3
        assert all(name.startswith("linux-") for name in names)

    @pytest.mark.parametrize("name", ["../x", "A", "", "-x", "a/b", ".hidden"])
    def test_a_tree_cannot_be_named_like_a_path_or_an_option(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(UnknownTree, match="cannot name a tree"):
            open_git(name, own_address(str(tmp_path)), tmp_path)


class TestLookup:
    def test_an_unknown_tree_names_those_there_are(self, trees: Path) -> None:
        with pytest.raises(UnknownTree, match=r'"fake-6.2".*Did you mean "fake-6.1"'):
            open_tree("fake-6.2", trees / "trees")

    def test_an_unknown_revision_names_the_nearest(self, tree: SourceTree) -> None:
        with pytest.raises(UnknownRevision, match=r'"v6.1.129".*Did you mean "v6.1.192"'):
            resolve(tree, "v6.1.129")

    @pytest.mark.parametrize(
        "revision",
        [
            "--all",
            "--upload-pack=x",
            "main..main",
            ":/fix",
            "main@{1}",
            "main^{/x}",
            "main:Makefile",
            "main main",
            "-",
            "a\nb",
        ],
    )
    def test_a_revision_that_is_more_than_a_name_is_unknown(self, tree: SourceTree, revision: str) -> None:
        with pytest.raises(UnknownRevision):
            resolve(tree, revision)

    def test_a_short_id_is_a_revision(self, tree: SourceTree) -> None:
        assert resolve(tree, COMMIT[:10]).commit == COMMIT

    def test_a_file_is_read_from_a_tree(self, tree: SourceTree) -> None:
        assert read_file(tree, resolve(tree, "").tree_id, "Makefile") == MAKEFILE

    @pytest.mark.parametrize("path", ["fs/inode.d", "fs", "", "../x", "/Makefile", "no/such/folder.c"])
    def test_a_file_that_is_not_there_is_named(self, tree: SourceTree, path: str) -> None:
        with pytest.raises(UnknownPath, match=f'no file "{path}"'):
            read_file(tree, resolve(tree, "").tree_id, path)

    def test_the_nearest_file_is_suggested(self, tree: SourceTree) -> None:
        with pytest.raises(UnknownPath, match=r'Did you mean "fs/inode.c"'):
            read_file(tree, resolve(tree, "").tree_id, "fs/inode.h")


class TestChanges:
    def variant(self, tmp_path: Path, files: dict[str, bytes | None]) -> tuple[SourceTree, str, str]:
        """Two trees in one repository: FILES, and FILES with some replaced, added or (None) left out."""
        root = tmp_path / "trees"
        before = import_archive("t", make_archive(tmp_path / "a.tar"), root)
        after_files = {path: data for path, data in {**FILES, **files}.items() if data is not None}
        first = resolve(before, "").tree_id
        after = import_archive("t", make_archive(tmp_path / "b.tar", after_files), root)
        return after, first, resolve(after, "").tree_id

    def test_a_directory_with_something_in_it_is_left_alone(self, tree: SourceTree, tmp_path: Path) -> None:
        (tmp_path / "mine").write_text("x")
        with pytest.raises(GitFailed, match="is not empty"):
            extract_tree(tree, resolve(tree, "").tree_id, tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == ["mine"]

    def test_only_what_differs_is_written_and_deleted(self, tmp_path: Path) -> None:
        tree, first, second = self.variant(
            tmp_path, {"fs/inode.c": b"new\n", "fs/dir.c": None, "new/deep/x.c": b"x"}
        )
        out = tmp_path / "out"
        extract_tree(tree, first, out)
        untouched = (out / "Makefile").stat()
        changed = extract_changes(tree, first, second, out)
        assert {file.path: file.deleted for file in changed} == {
            "fs/dir.c": True,
            "fs/inode.c": False,
            "new/deep/x.c": False,
        }
        assert (out / "Makefile").stat() == untouched
        extract_tree(tree, second, tmp_path / "whole")
        assert (
            subprocess.run(
                ["diff", "-r", "--no-dereference", out, tmp_path / "whole"], check=False
            ).returncode
            == 0
        )

    def test_a_file_shared_by_a_hard_link_is_not_written_into(self, tmp_path: Path) -> None:
        tree, first, second = self.variant(tmp_path, {"fs/inode.c": b"new\n"})
        extract_tree(tree, first, tmp_path / "out")
        (tmp_path / "shared").hardlink_to(tmp_path / "out" / "fs/inode.c")
        extract_changes(tree, first, second, tmp_path / "out")
        assert (tmp_path / "shared").read_bytes() == FILES["fs/inode.c"]

    def test_a_folder_left_empty_goes_and_a_file_may_take_its_place(self, tmp_path: Path) -> None:
        odd = {path: None for path in FILES if path.startswith("fs/")}
        tree, first, second = self.variant(tmp_path, {**odd, "fs": b"a file now\n"})
        extract_tree(tree, first, tmp_path / "out")
        extract_changes(tree, first, second, tmp_path / "out")
        assert (tmp_path / "out" / "fs").read_bytes() == b"a file now\n"
        extract_changes(tree, second, first, tmp_path / "out")
        assert (tmp_path / "out" / "fs/inode.c").read_bytes() == FILES["fs/inode.c"]

    def test_a_link_replaced_by_a_folder_is_not_followed(self, tmp_path: Path) -> None:
        root, outside = tmp_path / "trees", tmp_path / "outside"
        outside.mkdir()
        (outside / "x.c").write_text("mine")
        link = tarfile.TarInfo("linux-6.1/sub")
        link.type, link.linkname = tarfile.SYMTYPE, str(outside)
        before = import_archive("t", make_archive(tmp_path / "a.tar", extra=(link,)), root)
        first = resolve(before, "").tree_id
        tree = import_archive("t", make_archive(tmp_path / "b.tar", {**FILES, "sub/x.c": b"theirs"}), root)
        extract_tree(tree, first, tmp_path / "out")
        extract_changes(tree, first, resolve(tree, "").tree_id, tmp_path / "out")
        assert (outside / "x.c").read_text() == "mine"
        assert (tmp_path / "out/sub/x.c").read_text() == "theirs"

    def test_modes_and_blobs_are_told(self, tmp_path: Path) -> None:
        tree, first, second = self.variant(tmp_path, {"fs/inode.c": b"new\n", "fs/dir.c": None})
        changes = {file.path: (file.mode, file.deleted) for file in changed_files(tree, first, second)}
        assert changes == {"fs/inode.c": ("100644", False), "fs/dir.c": ("", True)}


def test_what_git_is_given_cannot_be_a_users_configuration(
    tree: SourceTree, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".gitconfig").write_text("[broken\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_DIR", "/nonexistent")
    assert run_git(tree.repository, "rev-parse", "HEAD").decode().strip() == COMMIT


def test_a_failure_names_gits_verb_and_keeps_what_it_wrote(tree: SourceTree) -> None:
    with pytest.raises(GitFailed, match="git cat-file ended with status 128: fatal") as caught:
        run_git(tree.repository, "-c", "core.bare=true", "cat-file", "blob", "0" * 40)
    assert "0000" in caught.value.detail


def test_git_has_a_deadline(tree: SourceTree) -> None:
    with pytest.raises(GitFailed, match=r"did not end within 0\.2 s"):
        run_git(tree.repository, "-c", "alias.wait=!sleep 30", "wait", deadline_s=0.2)


def test_an_archive_counts_as_imported_until_its_file_changes(tmp_path: Path) -> None:
    file = make_archive(tmp_path / "a.tar")
    trees = tmp_path / "trees"
    assert not is_imported("t", file, trees)
    import_archive("t", file, trees)
    assert is_imported("t", file, trees)
    make_archive(file, FILES | {"fs/new.c": b"int new;\n"})
    assert not is_imported("t", file, trees)
