# SPDX-License-Identifier: GPL-2.0-or-later
"""Find the branch whose line of first parents holds a commit, and where that line forked off the default branch."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kernels.errors import UnknownRevision
from kernels.trees.git import run_git
from kernels.trees.tree import SourceTree, resolve

_NAME_LENGTH = 200
# Of the branches that contain a commit, only so many are looked at: each takes a run of git.
_MOST_TRIED = 20


@dataclass(frozen=True, slots=True)
class BranchPlace:
    """The line of a commit. branch: "" for the default branch, or if no branch is known to hold the commit.

    fork: position of the newest commit that the line shares with the default branch's; None if there is none or it is unknown.
    known: whether the branch was found.
    """

    branch: str = ""
    fork: int | None = None
    known: bool = field(default=False, compare=False)

    def branch_at(self, position: int) -> str | None:
        """Return the branch of the commit at a position of the line, None if it is not known."""
        if not self.known:
            return None
        return "" if self.fork is not None and position <= self.fork else self.branch


def branch_place(tree: SourceTree, commit: str, preferred: Iterable[str] = ()) -> BranchPlace:
    """Return the branch whose line holds a commit: the default branch, else a preferred one, else the first by name.

    Raises GitFailed.
    """
    default = _default_tip(tree)
    if not default:
        return BranchPlace()
    if _is_on_line(tree, commit, default):
        return BranchPlace(known=True)
    for name in _containing(tree, commit, preferred):
        if _is_on_line(tree, commit, f"refs/heads/{name}"):
            return BranchPlace(name, _fork(tree, commit, default), known=True)
    return BranchPlace()


def place_on_branch(tree: SourceTree, commit: str, branch: str) -> BranchPlace:
    """Return the place of a commit that is known to be of a branch; of the default branch for its name. Raises GitFailed."""
    if branch in ("", tree.default_revision):
        return BranchPlace(known=True)
    default = _default_tip(tree)
    return BranchPlace(branch, _fork(tree, commit, default) if default else None, known=True)


def _containing(tree: SourceTree, commit: str, preferred: Iterable[str]) -> Iterator[str]:
    options = ("--format=%(refname:lstrip=2)", f"--contains={commit}", "refs/heads/")
    listed = run_git(tree.repository, "for-each-ref", *options).decode(errors="replace").split("\n")
    # U+FFFD stands for bytes that are no UTF-8: git would not find the branch by it.
    named = (name for name in listed if name and name.isprintable() and "\ufffd" not in name)
    names = [name for name in named if len(name) <= _NAME_LENGTH]
    first = [name for name in dict.fromkeys(preferred) if name in names]
    yield from [*first, *(name for name in names if name not in first)][:_MOST_TRIED]


def _default_tip(tree: SourceTree) -> str:
    try:
        return resolve(tree, "").commit
    except UnknownRevision:
        return ""


def _fork(tree: SourceTree, commit: str, default: str) -> int | None:
    # Not --exclude-first-parent-only: git 2.39 also excludes second parents, depending on the order of its walk.
    theirs = set(_line(tree, default))
    shared = sum(revision in theirs for revision in _line(tree, commit))
    return shared - 1 if shared else None


def _is_on_line(tree: SourceTree, commit: str, tip: str) -> bool:
    """Return whether a commit is a tip or one of its ancestors by first parents."""
    # Only the commits since then are read, unless the answer is no or dates of commits are wrong.
    since = run_git(tree.repository, "log", "--first-parent", "--format=%P", tip, "--not", commit, "--")
    parents = since.decode().removesuffix("\n").rpartition("\n")[2].split()
    return parents[:1] == [commit] or commit in _line(tree, tip)


def _line(tree: SourceTree, tip: str) -> list[str]:
    return run_git(tree.repository, "rev-list", "--first-parent", tip, "--").decode().split()
