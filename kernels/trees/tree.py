# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernel source trees: a tarball or a git repository in, named revisions and files out.

Every tree is a bare repository `<root>/<name>.git`; later steps see only git. It appears by one rename when it is
whole, so that a process killed half-way leaves nothing but a hidden directory, which the next one removes.
"""

import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from kernels.errors import (
    DiskFull,
    TreeUnreadable,
    UnknownPath,
    UnknownRevision,
    UnknownTree,
    suggest,
)
from kernels.files.scratch import place_synced
from kernels.trees import remote, tarball
from kernels.trees.address import Address
from kernels.trees.git import hide_password, run_git, try_git
from kernels.trees.listing import check_tree
from kernels.trees.remote import USUAL, FetchLimits
from kernels.trees.whole_repository import appearing, locked

DEFAULT_ARCHIVES = {
    "debian-6.1": Path("/usr/src/linux-source-6.1.tar.xz"),
    "debian-6.12": Path("/usr/src/linux-source-6.12.tar.xz"),
}
# A kernel's repository is 2.2 times the size of its .tar.xz.
REPOSITORY_PER_ARCHIVE = 3

_ORIGIN = "kperflab.location"
_OBJECT = re.compile(r"[0-9a-f]{40}")
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
# Plain names and ~n, ^n only: no ranges, no reflogs, no ":/text", which would search the whole history.
_REVISION = re.compile(r"(?!.*(?:\.\.|//|@\{))[\w][\w./+-]{0,250}(?:[~^]\d{0,6}){0,20}")


@dataclass(frozen=True, slots=True)
class SourceTree:
    """A source tree: a bare git repository and its default revision."""

    name: str
    repository: Path
    default_revision: str


@dataclass(frozen=True, slots=True)
class NamedRevision:
    """One commit of a tree; `name` is the name by which it was requested."""

    commit: str
    tree_id: str
    name: str


def unknown_tree(name: str, valid: Iterable[str]) -> UnknownTree:
    """Return the error for a tree that is not registered; it names the registered ones."""
    return UnknownTree(f'there is no tree "{name}". {suggest(name, valid)}')


def open_tree(name: str, root: Path) -> SourceTree:
    """Return a tree that was imported or cloned before. Raises UnknownTree."""
    repository = root / f"{name}.git"
    if not _NAME.fullmatch(name) or not repository.is_dir():
        raise unknown_tree(name, sorted(path.stem for path in root.glob("[!.]*.git")))
    return SourceTree(name, repository, _setting(repository, "kperflab.default"))


def import_archive(
    name: str, archive: Path, root: Path, *, on_progress: Callable[[float], None] = lambda _: None
) -> SourceTree:
    """Return the tree made from a source tarball: imported at the first call, and again if the file has changed since.

    The commit has the same id on every machine and is tagged v<VERSION>.<PATCHLEVEL>.<SUBLEVEL>. Processes that
    call it at the same time wait for one import. `on_progress` gets the fraction done. Raises UnknownTree if there is no such file, TreeUnreadable, LockBusy, DiskFull.
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


def is_imported(name: str, archive: Path, root: Path) -> bool:
    """Return whether `import_archive` would have nothing to do: the tree is there, and the file has not changed since."""
    repository = root / f"{name}.git"
    try:
        status = archive.stat()
    except OSError:
        # import_archive will fail at once and say what is wrong.
        return True
    stamp = f"{status.st_size}-{status.st_mtime_ns}"
    return repository.is_dir() and _setting(repository, "kperflab.archive") == stamp


def open_git(
    name: str,
    address: Address,
    root: Path,
    limits: FetchLimits = USUAL,
    *,
    on_note: Callable[[str], None] = lambda _: None,
    on_progress: remote.Progress | None = None,
) -> SourceTree:
    """Return the tree at an address: cloned at the first call, brought up to date at later ones.

    Its default revision stays the same for as long as the other side has a branch or tag of that name.
    A tree belongs to the address that it was cloned from: another address is refused under its name. on_note gets notes
    for people, such as tags that were moved there; on_progress gets the stage and the fraction of it that is done.
    Raises UnknownTree, TreeUnreadable, SourceUnreachable, TreeTooLarge, LockBusy, DiskFull.
    """
    _check_name(name)
    repository = root / f"{name}.git"
    with locked(name, root), appearing(repository) as place:
        if (place / "HEAD").exists():
            _check_origin(name, place, address)
        else:
            make_bare(place)
        listed = remote.fetch(address, place, limits, on_note, on_progress)
        default = _setting_or_none(place, "kperflab.default")
        if not {f"refs/heads/{default}", f"refs/tags/{default}"} & listed.refs.keys():
            _set(place, "kperflab.default", _default(listed))
        _set(place, _ORIGIN, address.identity)
    return open_tree(name, root)


def _check_origin(name: str, repository: Path, address: Address) -> None:
    """Refuse an address that the repository was not cloned from. Raises UnknownTree.

    Repositories of older releases have remote.origin.url instead; one that was made from a bundle of the store has no origin yet.
    """
    origin = _setting_or_none(repository, _ORIGIN) or _setting_or_none(repository, "remote.origin.url")
    if origin == address.identity or (
        not origin and _setting_or_none(repository, "kperflab.archive") == "store"
    ):
        return
    whose = hide_password(origin) if origin else "a source archive"
    raise UnknownTree(
        f"the tree {name} is {whose}, not {address.shown}; give {address.shown} as a git address of its own"
    )


def _default(listed: remote.ListedRefs) -> str:
    """Return the branch of the other side's HEAD, or its commit if HEAD is no branch; else the first branch or tag."""
    if f"refs/heads/{listed.head}" in listed.refs or _OBJECT.fullmatch(listed.head):
        return listed.head
    return next(iter(sorted(listed.refs))).split("/", 2)[2]


def has_tag(tree: SourceTree, name: str) -> bool:
    """Return whether a tree has a tag of exactly this name."""
    done = try_git(tree.repository, "show-ref", "--verify", "--quiet", "--", f"refs/tags/{name}")
    return done.returncode == 0


def archive_stamp(tree: SourceTree) -> str:
    """Return the size and time of the archive that a tree was imported from: "" for a git repository, "store" for one from a bundle."""
    return _setting_or_none(tree.repository, "kperflab.archive") or ""


def resolve(tree: SourceTree, revision: str) -> NamedRevision:
    """Return the commit that a tag, branch or (short) id means. Raises UnknownRevision, naming the nearest."""
    asked = revision or tree.default_revision
    if _REVISION.fullmatch(asked):
        commit = _parse(tree, f"{asked}^{{commit}}")
        if commit:
            return NamedRevision(commit, _parse(tree, f"{commit}^{{tree}}"), asked)
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


def read_file(tree: SourceTree, tree_id: str, path: str) -> bytes:
    """Return the bytes of one file of a revision's tree. Raises UnknownPath, naming the nearest in its folder."""
    folder = "" if PurePosixPath(path).parent == PurePosixPath(".") else f"{PurePosixPath(path).parent}/"
    if path and not path.startswith("/") and ".." not in path.split("/"):
        done = try_git(tree.repository, "cat-file", "blob", f"{tree_id}:{path}")
        if done.returncode == 0:
            return done.stdout
    listing = ("ls-tree", "-z", "--name-only", "--end-of-options", f"{tree_id}:{folder}")
    listed = try_git(tree.repository, *listing)
    names = [folder + name for name in listed.stdout.decode(errors="replace").split("\0") if name]
    raise UnknownPath(f'{tree.name} has no file "{path}". {suggest(path, names) if names else ""}')


@contextmanager
def temporary_index(tree: SourceTree, tree_id: str) -> Iterator[dict[str, str]]:
    """Make an index of a tree for as long as the block runs, and yield the environment that makes git use it.

    Raises TreeUnreadable for a tree that could not be written safely.
    """
    check_tree(tree.repository, tree_id)
    with tempfile.TemporaryDirectory(prefix="kperflab-index-") as place:
        environment = {"GIT_INDEX_FILE": f"{place}/index"}
        run_git(tree.repository, "read-tree", "--end-of-options", tree_id, environment=environment)
        yield environment


def keep(repository: Path, commit: str) -> None:
    """Give a commit a ref of its own, apart from branches and tags, so that no `git gc` removes it."""
    run_git(repository, "update-ref", f"refs/kperflab/{commit}", commit)


def _parse(tree: SourceTree, expression: str) -> str:
    asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", expression)
    done = try_git(tree.repository, *asked)
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


def make_bare(place: Path) -> None:
    """Make an empty repository for a tree, which never converts its files."""
    run_git(place, "init", "--quiet", "--bare", "--template=", "--initial-branch=main")
    _forbid_conversions(place)


def _forbid_conversions(place: Path) -> None:
    """Make git write files exactly as they were added, whatever a .gitattributes of the tree says."""
    attributes = place / "info" / "attributes"
    attributes.parent.mkdir(exist_ok=True)
    draft = attributes.with_suffix(".draft")
    draft.write_text("* -text -eol -ident -filter -working-tree-encoding -export-subst -export-ignore\n")
    place_synced(draft, attributes)


def _set(repository: Path, key: str, value: str) -> None:
    run_git(repository, "config", key, value)


def _setting(repository: Path, key: str) -> str:
    value = _setting_or_none(repository, key)
    if value is None:
        raise TreeUnreadable(f"{repository} was not made by kperflab: remove it, then try again")
    return value


def _setting_or_none(repository: Path, key: str) -> str | None:
    done = try_git(repository, "config", "--get", key)
    return done.stdout.decode().strip() if done.returncode == 0 else None
