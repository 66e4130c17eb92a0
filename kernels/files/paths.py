# SPDX-License-Identifier: GPL-2.0-or-later
"""Check the paths in a stranger's tree, before any file is written by them.

Git trees, archives and bundles name files with bytes that a stranger chose. A path is taken only if it is relative, if each of its
parts is an ordinary name, and if no two entries claim the same place.
"""

import re
from collections.abc import Iterable

from kernels.errors import TreeUnreadable

LONGEST_PATH = 4095
LONGEST_NAME = 255
# Code points that HFS+ ignores when it compares names, so that ".g\u200cit" is ".git" there.
_IGNORED = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
# NTFS drops what follows a colon and all dots and blanks at the end, and calls ".git" also "git~1".
_DOT_GIT = re.compile(r"\.git|git~[0-9]+", re.IGNORECASE)
# A path whose parts are plain ASCII and begin with a letter, a digit or "_", as nearly all paths of a kernel: no check below refuses it
# if it is no longer than one part may be.
_PLAIN = re.compile(r"\w[\w.+,=@-]*(?:/\w[\w.+,=@-]*)*", re.ASCII)


def check_path(path: str) -> None:
    """Refuse git's own files, and any path that is not plainly a file below the tree's top. Raises TreeUnreadable.

    path: decoded by os.fsdecode. Bytes that are not UTF-8 are allowed, since the kernel allows them.
    """
    if problem := _problem(path):
        raise TreeUnreadable(f'the tree holds a file named "{shown(path)}", {problem}: it is not written')


def shown(path: str) -> str:
    """Return a path as printable ASCII of at most 200 characters, for messages."""
    escaped = path[:200].encode("unicode_escape").decode("ascii")
    return escaped if len(escaped) <= 200 else f"{escaped[:200]}…"


class Places:
    """The entries of one tree so far, to refuse two that claim the same place."""

    def __init__(self) -> None:
        self._files: set[str] = set()
        self._folders: set[str] = set()

    def add(self, path: str) -> None:
        """Take one file, link or submodule. Raises TreeUnreadable for a bad path, a duplicate, a file that is a folder too."""
        check_path(path)
        if path in self._files:
            raise TreeUnreadable(f'the tree holds "{shown(path)}" twice: it is not written')
        if path in self._folders:
            raise _both(path)
        above = path
        while "/" in above:
            above = above.rpartition("/")[0]
            if above in self._files:
                raise _both(above)
            if above in self._folders:
                break
            self._folders.add(above)
        self._files.add(path)


def check_paths(paths: Iterable[str]) -> None:
    """Check all paths of one tree, also against each other. Raises TreeUnreadable."""
    places = Places()
    for path in paths:
        places.add(path)


def _both(path: str) -> TreeUnreadable:
    return TreeUnreadable(f'the tree holds "{shown(path)}" as a file and as a folder: it is not written')


def _problem(path: str) -> str:
    if len(path) <= LONGEST_NAME and _PLAIN.fullmatch(path):
        return ""
    if not path:
        return "which is empty"
    if "\0" in path:
        return "which has a NUL byte"
    if path.startswith("/"):
        return "which is absolute"
    if len(path.encode("utf-8", "surrogateescape")) > LONGEST_PATH:
        return f"which is longer than {LONGEST_PATH} bytes"
    return next((problem for part in path.split("/") if (problem := _part_problem(part))), "")


def _part_problem(part: str) -> str:
    if part in ("", ".", ".."):
        return f'which has a part "{part}" and would leave the tree'
    if len(part.encode("utf-8", "surrogateescape")) > LONGEST_NAME:
        return f"of which a part is longer than {LONGEST_NAME} bytes"
    # A backslash is an ordinary character here and a separator elsewhere; neither reading may be git's own folder.
    for name in (part, *part.split("\\")):
        if _DOT_GIT.fullmatch(_IGNORED.sub("", name).split(":")[0].rstrip(". ")):
            return "which is git's own folder"
        if name == ".." and name != part:
            return "which would leave the tree where a backslash separates folders"
    return ""
