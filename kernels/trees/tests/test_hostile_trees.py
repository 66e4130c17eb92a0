# SPDX-License-Identifier: GPL-2.0-or-later
"""Trees with which old git clients wrote files anywhere: the fetch and the extraction must each refuse them."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from kernels.builds.layers import over_base
from kernels.errors import TreeUnreadable
from kernels.files.beneath import Beneath
from kernels.tests.stranger import FILE, FOLDER, LINK, MODULE, SCRIPT, Stranger, snapshot
from kernels.trees import listing
from kernels.trees.address import own_address
from kernels.trees.extract import changed_files, extract_changes, extract_tree
from kernels.trees.tree import SourceTree, open_git, temporary_index

pytestmark = [pytest.mark.hostile, pytest.mark.process]

Make = Callable[[Stranger, Path], str]


def named(name: bytes, mode: bytes = FILE) -> Make:
    """A tree with one entry of that name."""
    return lambda stranger, _: stranger.tree(
        [(mode, name, stranger.plain() if mode == FOLDER else stranger.blob)]
    )


def nested(*names: bytes) -> Make:
    """A file below folders of those names."""

    def make(stranger: Stranger, _: Path) -> str:
        made = stranger.tree([(FILE, names[-1], stranger.blob)])
        for name in reversed(names[:-1]):
            made = stranger.tree([(FOLDER, name, made)])
        return made

    return make


def link_beside_folder(stranger: Stranger, outside: Path) -> str:
    folder = stranger.tree([(FILE, b"x.c", stranger.blob)])
    target = stranger.object("blob", os.fsencode(outside))
    return stranger.tree([(LINK, b"sub", target), (FOLDER, b"sub", folder)])


def folder_beside_link(stranger: Stranger, outside: Path) -> str:
    folder = stranger.tree([(FILE, b"x.c", stranger.blob)])
    target = stranger.object("blob", os.fsencode(outside))
    return stranger.tree([(FOLDER, b"sub", folder), (LINK, b"sub", target)])


def link_with_a_path_through_it(stranger: Stranger, outside: Path) -> str:
    target = stranger.object("blob", os.fsencode(outside))
    return stranger.tree([(LINK, b"sub", target), (FILE, b"sub/x.c", stranger.blob)])


def twice(stranger: Stranger, _: Path) -> str:
    return stranger.tree([(FILE, b"a", stranger.blob), (SCRIPT, b"a", stranger.blob)])


def file_and_folder(stranger: Stranger, _: Path) -> str:
    return stranger.tree([(FILE, b"fs", stranger.blob), (FOLDER, b"fs", stranger.plain())])


TREES: dict[str, Make] = {
    "an absolute path": lambda stranger, outside: named(os.fsencode(outside / "owned"))(stranger, outside),
    "an absolute folder": named(b"/tmp", FOLDER),
    "the folder above": named(b"..", FOLDER),
    "a file called ..": named(b".."),
    "this folder": named(b".", FOLDER),
    "a path that climbs": named(b"a/../../owned"),
    "a climb in steps": nested(b"a", b"..", b"..", b"owned"),
    "an empty name": named(b""),
    "an empty folder name": nested(b"", b"owned"),
    "a path with two slashes": named(b"a//b"),
    "a path that ends in a slash": named(b"a/"),
    ".git": nested(b".git", b"config"),
    ".GIT": nested(b".GIT", b"config"),
    ".git below": nested(b"fs", b".git", b"hooks", b"post-checkout"),
    ".git as a file": named(b".git"),
    ".git as a link": named(b".git", LINK),
    "git~1": nested(b"git~1", b"config"),
    ".git with blanks": nested(b".git  ", b"config"),
    ".git with dots": nested(b".git...", b"config"),
    ".git with a stream": nested(b".git::$INDEX_ALLOCATION", b"config"),
    ".git with an ignored code point": nested(".g\u200cit".encode(), b"config"),
    ".git behind a backslash": named(b"a\\.git\\config"),
    "a backslash that climbs": named(b"..\\..\\owned"),
    "a link beside a folder": link_beside_folder,
    "a folder beside a link": folder_beside_link,
    "a path through a link": link_with_a_path_through_it,
    "the same name twice": twice,
    "a file and a folder": file_and_folder,
    "a name of 300 bytes": named(b"n" * 300),
    "a path of 5,000 bytes": nested(*[b"d" * 200] * 25),
}
NOT_WRITTEN = "it is not written|cannot be listed: it is damaged"
# git's fetch lets these pass: the first two are harmless to it, and lengths are the file system's matter.
PAST_GIT = {"a backslash that climbs", "a name of 300 bytes", "a path of 5,000 bytes"}


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    place = tmp_path / "outside"
    place.mkdir()
    (place / "x.c").write_text("mine")
    return place


@pytest.mark.parametrize("kind", [kind for kind in TREES if kind not in PAST_GIT])
def test_a_clone_of_a_malformed_tree_is_refused_and_leaves_nothing(
    kind: str, tmp_path: Path, outside: Path
) -> None:
    stranger = Stranger(tmp_path / "theirs")
    base = stranger.commit(stranger.plain())
    stranger.commit(TREES[kind](stranger, outside), "evil", base)
    before = snapshot(outside)
    with pytest.raises(
        TreeUnreadable, match=r"theirs is refused: git finds malformed objects in it \([\w ]+\)"
    ):
        open_git("theirs", own_address(str(stranger.path)), tmp_path / "trees")
    assert [path.name for path in (tmp_path / "trees").iterdir()] == [".theirs.lock"]
    assert snapshot(outside) == before


@pytest.mark.parametrize("kind", [kind for kind in TREES if kind not in PAST_GIT])
def test_a_fetch_of_a_malformed_tree_is_refused_and_moves_no_branch(
    kind: str, tmp_path: Path, outside: Path
) -> None:
    stranger = Stranger(tmp_path / "theirs")
    base = stranger.commit(stranger.plain())
    tree = open_git("theirs", own_address(str(stranger.path)), tmp_path / "trees")
    stranger.commit(TREES[kind](stranger, outside), "main", base)
    with pytest.raises(TreeUnreadable, match="git finds malformed objects"):
        open_git("theirs", own_address(str(stranger.path)), tmp_path / "trees")
    assert (tree.repository / "packed-refs").read_text().count(base) == 1


@pytest.mark.parametrize("kind", TREES)
def test_a_malformed_tree_that_is_here_already_is_not_written(
    kind: str, tmp_path: Path, outside: Path
) -> None:
    """As if it had come before git's checks were on, or through a hole in them."""
    stranger = Stranger(tmp_path / "theirs")
    plain, evil = stranger.plain(), TREES[kind](stranger, outside)
    tree = SourceTree("theirs", stranger.path, "main")
    before = snapshot(tmp_path)
    for directory in ("changes", "whole", "upper"):
        (tmp_path / directory).mkdir()
    with pytest.raises(TreeUnreadable, match=NOT_WRITTEN):
        extract_changes(tree, plain, evil, tmp_path / "changes")
    with pytest.raises(TreeUnreadable, match=NOT_WRITTEN):
        extract_changes(tree, evil, plain, tmp_path / "changes")
    with pytest.raises(TreeUnreadable, match=NOT_WRITTEN):
        extract_tree(tree, evil, tmp_path / "whole")
    with pytest.raises(TreeUnreadable, match=NOT_WRITTEN):
        over_base(tree, outside, plain, evil, tmp_path / "upper" / "layer")
    with pytest.raises(TreeUnreadable, match=NOT_WRITTEN), temporary_index(tree, evil):
        pass
    for directory in ("changes", "whole"):
        (tmp_path / directory).rmdir()
    (tmp_path / "upper" / "layer").rmdir()
    (tmp_path / "upper").rmdir()
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("change", ["written", "deleted", "timed", "linked", "made", "absent"])
def test_what_is_written_below_a_folder_never_passes_a_link(
    change: str, tmp_path: Path, outside: Path
) -> None:
    """Even where the link was put there by somebody else between two writes."""
    top = tmp_path / "top"
    top.mkdir()
    (top / "sub").symlink_to(outside)
    before = snapshot(outside)
    with Beneath(top) as place:
        if change in ("deleted", "absent"):
            (place.remove if change == "deleted" else place.mark_absent)("sub/x.c")
        else:
            calls: dict[str, Callable[[], None]] = {
                "written": lambda: place.write("sub/new.c", b"theirs", 0o644),
                "timed": lambda: place.set_time("sub/x.c", 1.0),
                "linked": lambda: place.link("sub/new.c", b"/etc/passwd"),
                "made": lambda: place.folder("sub/deeper/still"),
            }
            with pytest.raises(TreeUnreadable, match=r"holds something else where .* should be"):
                calls[change]()
    assert snapshot(outside) == before
    assert (outside / "x.c").stat().st_mtime != 1.0


@pytest.mark.parametrize("there", ["a file", "a link", "a folder"])
def test_a_new_file_replaces_nothing(there: str, tmp_path: Path, outside: Path) -> None:
    place = tmp_path / "a"
    if there == "a file":
        place.write_text("mine")
    elif there == "a link":
        place.symlink_to(outside / "x.c")
    else:
        place.mkdir()
    before = snapshot(tmp_path)
    with Beneath(tmp_path) as top, pytest.raises(TreeUnreadable, match='something else where "a" should be'):
        top.write("a", b"theirs", 0o644)
    assert snapshot(tmp_path) == before


MODES = {
    b"100644": 0o644, b"100755": 0o755, b"100664": 0o644, b"100600": 0o644, b"104755": 0o755, b"106711": 0o755,
    b"100777": 0o755, b"100000": 0o644, b"0100644": 0o644,
}  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
def test_a_file_is_written_plainly_whatever_its_mode_says(mode: bytes, tmp_path: Path) -> None:
    """No set-user-id, no write permission for others; a leading zero is harmless and real history has it."""
    stranger = Stranger(tmp_path / "theirs")
    base = stranger.commit(stranger.plain())
    stranger.commit(stranger.tree([(mode, b"tool", stranger.blob)]), "odd", base)
    tree = open_git("theirs", own_address(str(stranger.path)), tmp_path / "trees")
    extract_changes(tree, stranger.plain(), "odd^{tree}", _made(tmp_path / "out"))
    extract_tree(tree, stranger.git("rev-parse", "odd^{tree}"), tmp_path / "whole")
    written = stat.S_IMODE((tmp_path / "out" / "tool").stat().st_mode)
    assert written == MODES[mode]
    assert stat.S_IMODE((tmp_path / "whole" / "tool").stat().st_mode) & 0o7111 == written & 0o7111


@pytest.mark.parametrize("mode", [b"160000", b"020644", b"060644", b"010644", b"140755", b"777777", b"0"])
def test_what_is_no_file_becomes_an_empty_folder_at_most(mode: bytes, tmp_path: Path) -> None:
    """Devices, pipes and sockets have no meaning in a tree: git reads them as submodules, which are never fetched."""
    stranger = Stranger(tmp_path / "theirs")
    evil = stranger.tree([(mode, b"odd", stranger.blob)])
    tree = SourceTree("theirs", stranger.path, "main")
    try:
        extract_changes(tree, stranger.plain(), evil, _made(tmp_path / "out"))
    except TreeUnreadable:
        assert list((tmp_path / "out").iterdir()) == []
    else:
        assert stat.S_ISDIR((tmp_path / "out" / "odd").lstat().st_mode)
        assert list((tmp_path / "out" / "odd").iterdir()) == []


def test_a_submodule_is_never_fetched(tmp_path: Path) -> None:
    stranger = Stranger(tmp_path / "theirs")
    text = f'[submodule "x"]\n\tpath = x\n\turl = {stranger.path}\n'.encode()
    base = stranger.commit(stranger.plain())
    modules = stranger.object("blob", text)
    stranger.commit(stranger.tree([(FILE, b".gitmodules", modules), (MODULE, b"x", base)]))
    tree = open_git("theirs", own_address(str(stranger.path)), tmp_path / "trees")
    extract_tree(tree, stranger.git("rev-parse", "main^{tree}"), tmp_path / "whole")
    assert list((tmp_path / "whole" / "x").iterdir()) == []


@pytest.mark.parametrize("target", [b"/etc/passwd", b"../../../../etc/passwd", b"/proc/self/root", b"x"])
def test_a_link_is_written_as_a_link_and_not_followed(target: bytes, tmp_path: Path) -> None:
    """Only the sandbox follows it, where the host's files are not."""
    stranger = Stranger(tmp_path / "theirs")
    evil = stranger.tree([(LINK, b"link", stranger.object("blob", target))])
    tree = SourceTree("theirs", stranger.path, "main")
    extract_changes(tree, stranger.plain(), evil, _made(tmp_path / "out"))
    extract_tree(tree, evil, tmp_path / "whole")
    for place in ("out", "whole"):
        assert os.fsencode((tmp_path / place / "link").readlink()) == target
    extract_changes(tree, evil, stranger.tree([(FILE, b"link", stranger.blob)]), tmp_path / "out")
    assert (tmp_path / "out" / "link").is_file()
    assert not (tmp_path / "out" / "link").is_symlink()


@pytest.mark.parametrize("target", [b"", b"a\0b"])
def test_a_link_to_what_is_no_path_is_refused(target: bytes, tmp_path: Path) -> None:
    stranger = Stranger(tmp_path / "theirs")
    evil = stranger.tree([(LINK, b"link", stranger.object("blob", target))])
    with pytest.raises(TreeUnreadable, match='the link "link" has no target that a path could be'):
        extract_changes(
            SourceTree("t", stranger.path, "main"), stranger.plain(), evil, _made(tmp_path / "out")
        )
    assert list((tmp_path / "out").iterdir()) == []


class TestSizes:
    def test_ten_nested_trees_of_ten_are_not_walked_to_the_end(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(listing, "MOST_LISTED", 1 << 20)
        stranger = Stranger(tmp_path / "theirs")
        made = stranger.tree([(FILE, b"%d" % number, stranger.blob) for number in range(10)])
        for _ in range(9):
            made = stranger.tree([(FOLDER, b"%d" % number, made) for number in range(10)])
        stranger.commit(made)
        tree = open_git("theirs", own_address(str(stranger.path)), tmp_path / "trees")
        with pytest.raises(TreeUnreadable, match=r"more than 400,000 files: this is not a kernel tree"):
            extract_tree(tree, made, tmp_path / "whole")
        with pytest.raises(TreeUnreadable, match="more than 400,000 files"), temporary_index(tree, made):
            pass

    def test_too_many_files_are_refused_by_their_number(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(listing, "MAX_FILES", 3)
        stranger = Stranger(tmp_path / "theirs")
        evil = stranger.tree([(FILE, b"%d" % number, stranger.blob) for number in range(4)])
        with pytest.raises(TreeUnreadable, match="more than 3 files"):
            changed_files(SourceTree("t", stranger.path, "main"), stranger.plain(), evil)

    def test_a_blob_that_unpacks_to_more_than_any_source_file_is_not_read(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(listing, "MAX_FILE_BYTES", 8 << 20)
        stranger = Stranger(tmp_path / "theirs")
        bomb = stranger.object("blob", bytes(9 << 20))
        evil = stranger.tree([(FILE, b"bomb", bomb)])
        stranger.commit(evil, "main", stranger.commit(stranger.plain()))
        assert sum(path.stat().st_size for path in stranger.path.rglob("*") if path.is_file()) < 4 << 20
        tree = open_git("theirs", own_address(str(stranger.path)), tmp_path / "trees")
        with pytest.raises(TreeUnreadable, match=r'"bomb" is larger than 8 MiB'):
            extract_changes(tree, stranger.plain(), evil, _made(tmp_path / "out"))
        with pytest.raises(TreeUnreadable, match=r'"bomb" is larger than 8 MiB'):
            extract_tree(tree, evil, tmp_path / "whole")

    def test_many_large_files_are_refused_by_their_sum(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(listing, "MAX_BYTES", 1 << 30)
        stranger = Stranger(tmp_path / "theirs")
        large = stranger.object("blob", bytes(16 << 20))
        evil = stranger.tree([(FILE, b"%d" % number, large) for number in range(65)])
        with pytest.raises(TreeUnreadable, match=r"files are more than 1 GiB"):
            extract_tree(SourceTree("t", stranger.path, "main"), evil, tmp_path / "whole")

    def test_a_link_to_a_megabyte_is_refused(self, tmp_path: Path) -> None:
        stranger = Stranger(tmp_path / "theirs")
        evil = stranger.tree([(LINK, b"link", stranger.object("blob", b"a/" * (1 << 19)))])
        with pytest.raises(TreeUnreadable, match='the link "link" has a target of 1048576 bytes'):
            extract_tree(SourceTree("t", stranger.path, "main"), evil, tmp_path / "whole")

    def test_a_tree_without_one_of_its_files_is_refused(self, tmp_path: Path) -> None:
        stranger = Stranger(tmp_path / "theirs")
        evil = stranger.tree([(FILE, b"gone", "12" * 20)])
        with pytest.raises(TreeUnreadable, match='"gone" is named by the tree and missing'):
            extract_tree(SourceTree("t", stranger.path, "main"), evil, tmp_path / "whole")


def _made(path: Path) -> Path:
    path.mkdir()
    return path
