# SPDX-License-Identifier: GPL-2.0-or-later
"""Write the files of a tree, or those that differ from another tree's, into a directory.

The tree need not be trusted: it is checked first, and nothing is written through a link.
"""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from kernels.errors import DiskFull, GitFailed
from kernels.files.beneath import Beneath
from kernels.files.paths import check_path
from kernels.trees.git import run_git, try_git
from kernels.trees.listing import check_tree
from kernels.trees.tree import SourceTree, temporary_index

EXTRACT_DEADLINE_S = 900.0
ROOM_TO_WRITE = 4 << 20


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A path that differs between two trees: mode and blob on the new side, both empty if it is gone there."""

    path: str
    mode: str
    blob: str
    added: bool = False

    @property
    def deleted(self) -> bool:
        """Return whether the new side has no such file."""
        return not self.blob


def changed_files(tree: SourceTree, from_tree: str, to_tree: str) -> tuple[ChangedFile, ...]:
    """Return the files that differ between two trees, by path; a rename is a deletion and an addition.

    Raises TreeUnreadable for a tree that `kernels.trees.listing.check_tree` refuses.
    """
    for tree_id in (from_tree, to_tree):
        check_tree(tree.repository, tree_id)
    raw = run_git(
        tree.repository,
        "diff-tree",
        "-r",
        "-z",
        "--raw",
        "--no-renames",
        "--end-of-options",
        from_tree,
        to_tree,
    )
    fields = os.fsdecode(raw).split("\0")[:-1]
    return tuple(_changed(meta, path) for meta, path in zip(fields[::2], fields[1::2], strict=True))


def extract_tree(tree: SourceTree, tree_id: str, directory: Path) -> None:
    """Write all files of a tree into an empty or missing directory, byte for byte (8 to 35 s for a kernel).

    Raises TreeUnreadable before anything is written; DiskFull, GitFailed: the directory is then incomplete.
    """
    directory.mkdir(parents=True, exist_ok=True)
    if next(directory.iterdir(), None):
        raise GitFailed(f"{directory} is not empty: remove what is in it, then try again")
    # A bare repository has no work tree unless core.bare is off; 0 workers means one for each core.
    settings = ("-c", "core.bare=false", "-c", "checkout.workers=0")
    with temporary_index(tree, tree_id) as environment:
        done = try_git(
            tree.repository,
            *settings,
            f"--work-tree={directory}",
            "checkout-index",
            "--all",
            "--quiet",
            environment=environment,
            deadline_s=EXTRACT_DEADLINE_S,
        )
    if done.returncode:
        detail = done.stderr.decode(errors="replace")[-4000:]
        if shutil.disk_usage(directory).free < ROOM_TO_WRITE:  # git does not say why it could not write
            raise DiskFull(f"{directory} is full: free some space, then try again", detail)
        raise GitFailed(f"not all files of {tree.name} could be written to {directory}", detail)


def extract_changes(
    tree: SourceTree, from_tree: str, to_tree: str, directory: Path
) -> tuple[ChangedFile, ...]:
    """Turn a directory with `from_tree` into `to_tree`, touching only the files that differ, which are returned.

    A file is replaced, never written into: it may be shared with another directory. Raises TreeUnreadable.
    """
    changed = changed_files(tree, from_tree, to_tree)
    with Beneath(directory) as place:
        for file in changed:
            if not file.added:  # an added path may now lead elsewhere, through a link
                place.remove(file.path)
        for file in changed:
            if not file.deleted:
                _write(tree, place, file)
    return changed


def _changed(meta: str, path: str) -> ChangedFile:
    check_path(path)
    _, mode, _, blob, status = meta.split(" ")
    return ChangedFile(path, "", "") if status == "D" else ChangedFile(path, mode, blob, added=status == "A")


def _write(tree: SourceTree, place: Beneath, file: ChangedFile) -> None:
    if file.mode == "160000":  # a submodule, which we never fetch
        place.folder(file.path)
        return
    data = run_git(tree.repository, "cat-file", "blob", file.blob)
    if file.mode == "120000":
        place.link(file.path, data)
    else:
        place.write(file.path, data, 0o755 if file.mode == "100755" else 0o644)
