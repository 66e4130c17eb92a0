# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernel source trees: a tarball or a git repository in, named revisions and files out.

Every tree is a bare repository `<root>/<name>.git`; later steps see only git. It appears by one rename when it is
whole, so that a process killed half-way leaves nothing but a hidden directory, which the next one removes.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from kernels import archive as tarball
from kernels import remote
from kernels.appear import appearing, locked
from kernels.errors import (
    DiskFull,
    GitFailed,
    TreeUnreadable,
    UnknownPath,
    UnknownRevision,
    UnknownTree,
    suggest,
)
from kernels.git import run_git, try_git

DEFAULT_ARCHIVES = {
    "debian-6.1": Path("/usr/src/linux-source-6.1.tar.xz"),
    "debian-6.12": Path("/usr/src/linux-source-6.12.tar.xz"),
}
EXTRACT_DEADLINE_S = 900.0
ROOM_TO_WRITE = 4 << 20
# A kernel's repository is 2.2 times the size of its .tar.xz.
REPOSITORY_PER_ARCHIVE = 3

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
# Plain names and ~n, ^n only: no ranges, no reflogs, no ":/text", which would search the whole history.
_REVISION = re.compile(r"(?!.*(?:\.\.|//|@\{))[\w][\w./+-]{0,250}(?:[~^]\d{0,6}){0,20}")


@dataclass(frozen=True, slots=True)
class Tree:
    """A source tree: a bare git repository and the revision meant when none is given."""

    name: str
    repository: Path
    default_revision: str


@dataclass(frozen=True, slots=True)
class Revision:
    """One commit of a tree; `name` is what it was asked for by."""

    commit: str
    tree_id: str
    name: str


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A path that differs between two trees: mode and blob on the new side, both empty if it is gone there."""

    path: str
    mode: str
    blob: str
    added: bool = False

    @property
    def deleted(self) -> bool:
        """Whether the new side has no such file."""
        return not self.blob


@dataclass(frozen=True, slots=True)
class Changes:
    """What `extract_changes` did to a directory, by path relative to it."""

    written: tuple[str, ...]
    deleted: tuple[str, ...]


def unknown_tree(name: str, valid: Iterable[str]) -> UnknownTree:
    """The error for a tree that nobody registered; names those there are."""
    return UnknownTree(f'there is no tree "{name}". {suggest(name, valid)}')


def open_tree(name: str, root: Path) -> Tree:
    """A tree that was imported or cloned before. Raises UnknownTree."""
    repository = root / f"{name}.git"
    if not _NAME.fullmatch(name) or not repository.is_dir():
        raise unknown_tree(name, sorted(path.stem for path in root.glob("[!.]*.git")))
    return Tree(name, repository, _setting(repository, "kperflab.default"))


def import_archive(
    name: str, archive: Path, root: Path, *, on_progress: Callable[[float], None] = lambda _: None
) -> Tree:
    """The tree made of a source tarball: imported at the first call, and again if the file has changed since.

    The commit has the same id on every machine and is tagged v<VERSION>.<PATCHLEVEL>.<SUBLEVEL>. Processes that
    ask at once wait for one import. `on_progress` gets the fraction done. Raises UnknownTree if there is no such file, TreeUnreadable, TreeBusy, DiskFull.
    """
    _check_name(name)
    try:
        status = archive.stat()
    except OSError as exc:
        raise UnknownTree(f"there is no archive {archive} for the tree {name}: {exc.strerror}") from exc
    stamp = f"{status.st_size}-{status.st_mtime_ns}"
    repository = root / f"{name}.git"
    with locked(name, root):
        if repository.is_dir() and _setting(repository, "kperflab.archive") == stamp:
            return open_tree(name, root)
        _check_room(root, status.st_size * REPOSITORY_PER_ARCHIVE)
        with appearing(repository) as place:
            if not (place / "HEAD").exists():
                make_bare(place)
            tag = tarball.import_tar(archive, place, on_progress)
            keep(place, run_git(place, "rev-parse", f"refs/tags/{tag}").decode().strip())
            _set(place, "kperflab.default", tag)
            _set(place, "kperflab.archive", stamp)
    return open_tree(name, root)


def open_git(name: str, location: str, root: Path, *, deadline_s: float = remote.DEADLINE_S) -> Tree:
    """The tree at a git URL or path: cloned at the first call, brought up to date at later ones.

    Raises UnknownTree, TreeUnreadable, TreeUnreachable, TreeBusy, DiskFull.
    """
    _check_name(name)
    remote.transport(location)
    repository = root / f"{name}.git"
    with locked(name, root):
        if repository.is_dir():
            remote.fetch(location, repository, deadline_s)
        else:
            with appearing(repository) as place:
                remote.clone(location, place, deadline_s)
                _forbid_conversions(place)
                _set(place, "kperflab.default", _head(place))
    return open_tree(name, root)


def resolve(tree: Tree, revision: str) -> Revision:
    """The commit that a tag, branch or (short) id means. Raises UnknownRevision, naming the nearest."""
    asked = revision or tree.default_revision
    if _REVISION.fullmatch(asked):
        commit = _parse(tree, f"{asked}^{{commit}}")
        if commit:
            return Revision(commit, _parse(tree, f"{commit}^{{tree}}"), asked)
    listed = run_git(
        tree.repository,
        "for-each-ref",
        "--sort=-version:refname",
        "--format=%(refname:lstrip=2)",
        "refs/tags",
        "refs/heads",
    )
    raise UnknownRevision(
        f'{tree.name} has no revision "{asked}". {suggest(asked, listed.decode().split())}',
    )


def read_file(tree: Tree, tree_id: str, path: str) -> bytes:
    """The bytes of one file of a revision's tree. Raises UnknownPath, naming the nearest in its folder."""
    folder = "" if PurePosixPath(path).parent == PurePosixPath(".") else f"{PurePosixPath(path).parent}/"
    if path and not path.startswith("/") and ".." not in path.split("/"):
        done = try_git(f"--git-dir={tree.repository}", "cat-file", "blob", f"{tree_id}:{path}")
        if done.returncode == 0:
            return done.stdout
    listed = try_git(
        f"--git-dir={tree.repository}",
        "ls-tree",
        "-z",
        "--name-only",
        "--end-of-options",
        f"{tree_id}:{folder}",
    )
    names = [folder + name for name in listed.stdout.decode(errors="replace").split("\0") if name]
    raise UnknownPath(f'{tree.name} has no file "{path}". {suggest(path, names) if names else ""}')


def changed_files(tree: Tree, from_tree: str, to_tree: str) -> tuple[ChangedFile, ...]:
    """The files that differ between two trees, by path; a rename is a deletion and an addition."""
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


def extract_tree(tree: Tree, tree_id: str, directory: Path) -> None:
    """Write all files of a tree into an empty or missing directory, byte for byte (8 to 35 s for a kernel).

    Raises DiskFull, GitFailed; then the directory holds a part.
    """
    directory.mkdir(parents=True, exist_ok=True)
    if next(directory.iterdir(), None):
        raise GitFailed(f"{directory} is not empty: remove what is in it, then try again")
    # A bare repository has no work tree until told so; 0 workers are one for each core.
    settings = ("-c", "core.bare=false", "-c", "checkout.workers=0")
    with temporary_index(tree, tree_id) as environment:
        done = try_git(
            *settings,
            f"--git-dir={tree.repository}",
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


def extract_changes(tree: Tree, from_tree: str, to_tree: str, directory: Path) -> Changes:
    """Turn a directory that holds `from_tree` into `to_tree`, touching only the files that differ.

    A file is replaced, never written into: it may be shared with another directory.
    """
    changed = changed_files(tree, from_tree, to_tree)
    for file in changed:
        if not file.added:  # what is at an added path now may be another place, behind a link
            _remove(directory, file.path)
    for file in changed:
        if not file.deleted:
            _write(tree, directory, file)
    return Changes(
        tuple(file.path for file in changed if not file.deleted),
        tuple(file.path for file in changed if file.deleted),
    )


@contextmanager
def temporary_index(tree: Tree, tree_id: str) -> Iterator[dict[str, str]]:
    """An index that holds a tree, for as long as the block runs: the environment that makes git use it."""
    with tempfile.TemporaryDirectory(prefix="kperflab-index-") as place:
        environment = {"GIT_INDEX_FILE": f"{place}/index"}
        run_git(tree.repository, "read-tree", "--end-of-options", tree_id, environment=environment)
        yield environment


def keep(repository: Path, commit: str) -> None:
    """Give a commit a ref of its own, out of sight of branches and tags, so that no `git gc` removes it."""
    run_git(repository, "update-ref", f"refs/kperflab/{commit}", commit)


def _changed(meta: str, path: str) -> ChangedFile:
    _, mode, _, blob, status = meta.split(" ")
    return ChangedFile(path, "", "") if status == "D" else ChangedFile(path, mode, blob, added=status == "A")


def _remove(directory: Path, path: str) -> None:
    place = directory / path
    place.unlink(missing_ok=True)
    for parent in place.relative_to(directory).parents[:-1]:
        try:
            (directory / parent).rmdir()  # git knows no empty directories
        except OSError:
            return


def _write(tree: Tree, directory: Path, file: ChangedFile) -> None:
    place = directory / file.path
    place.parent.mkdir(parents=True, exist_ok=True)
    if file.mode == "160000":  # a submodule, which we never fetch
        place.mkdir(exist_ok=True)
        return
    data = run_git(tree.repository, "cat-file", "blob", file.blob)
    if file.mode == "120000":
        place.symlink_to(os.fsdecode(data))
    else:
        place.write_bytes(data)
        place.chmod(0o755 if file.mode == "100755" else 0o644)


def _parse(tree: Tree, expression: str) -> str:
    done = try_git(
        f"--git-dir={tree.repository}", "rev-parse", "--verify", "--quiet", "--end-of-options", expression
    )
    return done.stdout.decode().strip() if done.returncode == 0 else ""


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise UnknownTree(f'"{name}" cannot name a tree: use lower-case letters, digits, dots and dashes')


def _check_room(root: Path, needed: int) -> None:
    free = shutil.disk_usage(root).free
    if free < needed:
        raise DiskFull(
            f"{root} has {free >> 20} MiB free, the source tree needs {needed >> 20} MiB: free some space"
        )


def _head(place: Path) -> str:
    """The branch that the cloned repository has checked out, or the commit where it has none."""
    branch = try_git(f"--git-dir={place}", "symbolic-ref", "--quiet", "--short", "HEAD")
    done = branch if branch.returncode == 0 else try_git(f"--git-dir={place}", "rev-parse", "HEAD")
    return done.stdout.decode().strip()


def make_bare(place: Path) -> None:
    """Make an empty repository for a tree, whose files leave it as they come in."""
    run_git(place, "init", "--quiet", "--bare", "--template=", "--initial-branch=main")
    _forbid_conversions(place)


def _forbid_conversions(place: Path) -> None:
    """Files leave this repository as they came in, whatever a .gitattributes of the tree says."""
    attributes = place / "info" / "attributes"
    attributes.parent.mkdir(exist_ok=True)
    attributes.write_text("* -text -eol -ident -filter -working-tree-encoding -export-subst -export-ignore\n")


def _set(repository: Path, key: str, value: str) -> None:
    run_git(repository, "config", key, value)


def _setting(repository: Path, key: str) -> str:
    try:
        return run_git(repository, "config", "--get", key).decode().strip()
    except GitFailed as exc:
        raise TreeUnreadable(f"{repository} was not made by kperflab: remove it, then try again") from exc
