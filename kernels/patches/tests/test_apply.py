# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from kernels.errors import PatchDoesNotApply
from kernels.patches.apply import apply_patches
from kernels.patches.series import Patch
from kernels.tests.sources import FILES, make_archive
from kernels.trees.git import run_git
from kernels.trees.tree import NamedRevision, SourceTree, import_archive, read_file, resolve

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> SourceTree:
    place = tmp_path_factory.mktemp("apply")
    return import_archive("fake", make_archive(place / "a.tar"), place / "trees")


@pytest.fixture
def base(tree: SourceTree) -> NamedRevision:
    return resolve(tree, "")


def patch(title: str, *changes: tuple[str, bytes | None, bytes | None], context: int = 3) -> Patch:
    """A patch from each file's old and new content; None where there is no file."""
    return Patch(
        title,
        "A B <a@b>",
        "",
        "Why.",
        "",
        "".join(_diff(*change, context) for change in changes),
        tuple(change[0] for change in changes),
    )


def _diff(path: str, old: bytes | None, new: bytes | None, context: int) -> str:
    sides = [(side or b"").decode().splitlines(keepends=True) for side in (old, new)]
    extended = (
        "new file mode 100644\n" if old is None else "deleted file mode 100644\n" if new is None else ""
    )
    names = ("/dev/null" if old is None else f"a/{path}", "/dev/null" if new is None else f"b/{path}")
    body = "".join(difflib.unified_diff(sides[0], sides[1], names[0], names[1], n=context))
    return f"diff --git a/{path} b/{path}\n{extended}{body}"


def edit(title: str, path: str, old: bytes, new: bytes, *, source: bytes | None = None) -> Patch:
    content = FILES[path] if source is None else source
    assert old in content
    return patch(title, (path, content, content.replace(old, new)))


LINE_5 = edit("change 5", "fs/inode.c", b"line 5 of", b"line five of")
LINE_6 = edit("change 6", "fs/inode.c", b"line 6 of", b"line six of")
LINE_30 = edit("change 30", "fs/inode.c", b"line 30 of", b"line thirty of")
DIR = edit("change dir", "fs/dir.c", b"dir", b"directory")


def test_patches_apply_in_their_order_and_leave_the_rest_alone(tree: SourceTree, base: NamedRevision) -> None:
    after = apply_patches(tree, base, [LINE_5, DIR])
    assert b"line five of" in read_file(tree, after.tree_id, "fs/inode.c")
    assert read_file(tree, after.tree_id, "fs/dir.c") == b"int directory;\n"
    assert read_file(tree, after.tree_id, "Makefile") == FILES["Makefile"]
    log = run_git(tree.repository, "log", "--format=%s %an %at", after.commit).decode().splitlines()
    assert log[:2] == ["change dir kperflab 0", "change 5 kperflab 0"]


def test_equal_inputs_have_equal_ids_in_another_repository(
    tree: SourceTree, base: NamedRevision, tmp_path: Path
) -> None:
    other = import_archive("other", make_archive(tmp_path / "b.tar"), tmp_path / "elsewhere")
    assert apply_patches(tree, base, [LINE_5, DIR]) == apply_patches(other, resolve(other, ""), [LINE_5, DIR])


def test_the_same_change_by_another_route_has_the_same_tree_id(tree: SourceTree, base: NamedRevision) -> None:
    assert (
        apply_patches(tree, base, [LINE_5, LINE_30]).tree_id
        == apply_patches(tree, base, [LINE_30, LINE_5]).tree_id
    )


def test_no_patches_are_the_base(tree: SourceTree, base: NamedRevision) -> None:
    assert apply_patches(tree, base, []) == base


def test_the_commit_survives_git_gc(tree: SourceTree, base: NamedRevision) -> None:
    after = apply_patches(tree, base, [LINE_5])
    run_git(tree.repository, "gc", "--quiet", "--prune=now")
    assert resolve(tree, after.commit).tree_id == after.tree_id


def test_branches_and_tags_stay_as_they_were(tree: SourceTree, base: NamedRevision) -> None:
    apply_patches(tree, base, [LINE_5])
    assert resolve(tree, "main").commit == base.commit


def test_a_hunk_whose_line_numbers_are_off_applies(tree: SourceTree, base: NamedRevision) -> None:
    longer = b"more\nlines\nabove\n" + FILES["fs/inode.c"]
    moved = edit("moved", "fs/inode.c", b"line 20 of", b"line twenty of", source=longer)
    assert b"line twenty of" in read_file(tree, apply_patches(tree, base, [moved]).tree_id, "fs/inode.c")


def test_a_context_line_that_differs_is_not_overlooked(tree: SourceTree, base: NamedRevision) -> None:
    other = FILES["fs/inode.c"].replace(b"line 18 of", b"LINE 18 of")
    fuzzy = edit("fuzzy", "fs/inode.c", b"line 20 of", b"line twenty of", source=other)
    with pytest.raises(PatchDoesNotApply) as caught:
        apply_patches(tree, base, [fuzzy])
    assert 'the file has no line "LINE 18 of inode"' in str(caught.value)


def test_a_diff_without_context_is_said_to_be_one(tree: SourceTree, base: NamedRevision) -> None:
    name = "a/fs/inode.c b/fs/inode.c"
    diff = f"diff --git {name}\n--- a/fs/inode.c\n+++ b/fs/inode.c\n@@ -5,1 +5,1 @@\n-line 5 of inode\n+5\n"
    with pytest.raises(PatchDoesNotApply, match=r"it has no context.* \(git diff -U3\)"):
        apply_patches(tree, base, [Patch("bare", "", "", "", "", diff, ("fs/inode.c",))])


def test_a_hunk_that_fails_is_named_with_patch_file_number_and_text(
    tree: SourceTree, base: NamedRevision
) -> None:
    other = FILES["fs/inode.c"].replace(b"line 30 of", b"line XXX of")
    two = patch(
        "two hunks", ("fs/inode.c", other, other.replace(b"line 5 of", b"5").replace(b"line XXX of", b"30"))
    )
    with pytest.raises(PatchDoesNotApply) as caught:
        apply_patches(tree, base, [DIR, two])
    error = caught.value
    assert (error.title, error.file) == ("two hunks", "fs/inode.c")
    assert error.hunk.startswith("hunk 2 of 2 (@@ -27,7 +27,7 @@")
    assert "-line XXX of inode" in error.detail
    assert "line 5" not in error.detail
    assert "\n" not in str(error)


def test_a_failed_patch_leaves_no_commit(tree: SourceTree, base: NamedRevision) -> None:
    before = run_git(tree.repository, "for-each-ref")
    with pytest.raises(PatchDoesNotApply):
        apply_patches(tree, base, [LINE_5, LINE_5])
    assert run_git(tree.repository, "for-each-ref") == before


def test_a_patch_the_tree_has_already_is_said_to_be_so(tree: SourceTree, base: NamedRevision) -> None:
    with pytest.raises(PatchDoesNotApply, match="the tree has this change already"):
        apply_patches(tree, base, [LINE_5, LINE_5])


def test_a_file_that_is_not_there_is_said_to_be_so(tree: SourceTree, base: NamedRevision) -> None:
    with pytest.raises(PatchDoesNotApply, match=r"fs/gone\.c: the tree has no such file"):
        apply_patches(tree, base, [patch("x", ("fs/gone.c", b"a\n", b"b\n"))])


def test_a_file_that_is_there_already_cannot_be_created(tree: SourceTree, base: NamedRevision) -> None:
    with pytest.raises(
        PatchDoesNotApply, match=r"fs/dir\.c: the patch creates this file, but the tree has one"
    ):
        apply_patches(tree, base, [patch("x", ("fs/dir.c", None, b"b\n"))])


def test_files_are_created_and_deleted(tree: SourceTree, base: NamedRevision) -> None:
    both = patch("both", ("fs/new.c", None, b"new\n"), ("fs/dir.c", FILES["fs/dir.c"], None))
    after = apply_patches(tree, base, [both])
    listed = run_git(tree.repository, "ls-tree", "--name-only", after.tree_id, "fs/").decode().split()
    assert listed == ["fs/ignored.txt", "fs/inode.c", "fs/new.c"]


def test_a_patch_that_is_no_diff_does_not_apply(tree: SourceTree, base: NamedRevision) -> None:
    with pytest.raises(PatchDoesNotApply, match='"broken" does not apply: fs/x'):
        apply_patches(tree, base, [Patch("broken", "", "", "", "", "nothing here\n", ("fs/x",))])


def test_two_that_apply_alone_may_not_apply_together(tree: SourceTree, base: NamedRevision) -> None:
    for alone in (LINE_5, LINE_6):
        apply_patches(tree, base, [alone])
    with pytest.raises(PatchDoesNotApply) as caught:
        apply_patches(tree, base, [LINE_5, DIR, LINE_6])
    assert (caught.value.title, caught.value.file) == ("change 6", "fs/inode.c")
    assert 'the file has no line "line 5 of inode"' in caught.value.reason
