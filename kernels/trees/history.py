# SPDX-License-Identifier: GPL-2.0-or-later
"""The line of a tree's history: commits by first parent, each with its place, subject and author."""

from dataclasses import dataclass
from datetime import datetime

from kernels.errors import UnknownRevision
from kernels.printable import shown
from kernels.trees.git import run_git, try_git
from kernels.trees.tree import NamedRevision, SourceTree

# A subject and an author; the body stays in git.
# NUL is the one byte that none of the fields can hold.
_FORMAT = "%H%x00%s%x00%an <%ae>%x00%aI"
_FIELDS = 4
_UNDATED = "1970-01-01T00:00:00+00:00"
_SUBJECT_LENGTH = 500


@dataclass(frozen=True, slots=True)
class Logged:
    """One commit. position: the number of commits before it on its line of first parents; date is ISO 8601."""

    commit: str
    position: int
    subject: str
    author: str
    date: str


def logged(tree: SourceTree, commit: str) -> Logged:
    """One commit's place and heading. Raises GitFailed."""
    position = _position(tree, commit)
    return _read(run_git(tree.repository, "log", "-1", "-z", f"--format={_FORMAT}", commit, "--"), position)[
        0
    ]


def line(tree: SourceTree, start: NamedRevision, end: NamedRevision) -> tuple[Logged, ...]:
    """Return the commits after `start` up to and including `end`, by first parent, the oldest first.

    Raises UnknownRevision unless `start` is before `end` on that line, GitFailed.
    """
    done = try_git(tree.repository, "merge-base", "--is-ancestor", start.commit, end.commit)
    if done.returncode or start.commit == end.commit:
        raise UnknownRevision(
            f"{start.name} is not before {end.name} in {tree.name}: name the older one first"
        )
    span = f"{start.commit}..{end.commit}"
    options = ("--first-parent", "--reverse", "-z", f"--format={_FORMAT}")
    out = run_git(tree.repository, "log", *options, span, "--")
    before = _position(tree, end.commit) - len(_fields(out)) // _FIELDS
    return _read(out, before + 1)


def merges(tree: SourceTree, start: NamedRevision, end: NamedRevision) -> int:
    """Return the number of merges after `start`, up to and including `end`. Raises GitFailed."""
    span = f"{start.commit}..{end.commit}"
    return int(run_git(tree.repository, "rev-list", "--count", "--merges", span, "--"))


def _position(tree: SourceTree, commit: str) -> int:
    return int(run_git(tree.repository, "rev-list", "--count", "--first-parent", commit, "--")) - 1


def _read(out: bytes, first: int) -> tuple[Logged, ...]:
    fields = _fields(out)
    return tuple(
        Logged(commit, position, shown(subject)[:_SUBJECT_LENGTH], shown(author)[:300], _dated(date))
        for position, (commit, subject, author, date) in enumerate(
            zip(*(fields[start::_FIELDS] for start in range(_FIELDS)), strict=True), first
        )
    )


def _fields(out: bytes) -> list[str]:
    return out.decode(errors="replace").removesuffix("\0").split("\0")


def _dated(date: str) -> str:
    """Return a date as ISO 8601, the epoch if it is none: git writes nothing, or its own format, for a date it cannot read."""
    try:
        return datetime.fromisoformat(date).isoformat()
    except ValueError:
        return _UNDATED
