# SPDX-License-Identifier: GPL-2.0-or-later
"""Limits on what a patch may do, checked before anything touches a tree.

A kernel patch changes ordinary text files inside the tree. Everything else is refused: paths that leave the tree or
reach into git's own files (also by names that mean `.git` on other file systems only), symlinks, submodules, odd
modes, binary blobs, and sizes no kernel patch has. A change between 100644 and 100755 is allowed: real series make
scripts executable that way.
"""

import re
from collections.abc import Sequence

from kernels.diffs.unified import FileDiff
from kernels.errors import PatchRejected

MAX_INPUT_BYTES = 16 * 1024 * 1024
MAX_PATCHES = 200
MAX_FILES = 2_000
MAX_HUNKS = 20_000
MAX_LINE = 100_000
MAX_PATH = 1_000

MODES = {"100644", "100755"}
_STRANGE_MODES = {"120000": "a symlink", "160000": "a submodule", "040000": "a directory"}
# Every file of the kernel is named in printable ASCII; this also ends all tricks with ignored code points.
_PLAIN = re.compile(r"[ !#-\[\]-~]+")
_DOT_GIT = re.compile(r"\.git|git~[0-9]+", re.IGNORECASE)
_GITS_OWN = {".gitattributes", ".gitmodules"}


def check_size(data: bytes) -> None:
    """Refuse a submission that is too large, empty or not text. Raises PatchRejected."""
    if len(data) > MAX_INPUT_BYTES:
        raise PatchRejected(
            f"{len(data)} bytes are more than the {MAX_INPUT_BYTES} a submission may have; name a git range instead"
        )
    if not data.strip():
        raise PatchRejected("there is nothing in it; send what git format-patch wrote")
    if b"\0" in data:
        raise PatchRejected("this is not text (it holds a NUL byte); send what git format-patch wrote")


def check_files(files: Sequence[FileDiff]) -> None:
    """Refuse a patch that does anything but change text files inside the tree. Raises PatchRejected."""
    if len(files) > MAX_FILES:
        raise PatchRejected(f"it touches {len(files)} files, a patch may touch {MAX_FILES}; split it")
    hunks = sum(len(file.hunks) for file in files)
    if hunks > MAX_HUNKS:
        raise PatchRejected(f"it has {hunks} hunks, a patch may have {MAX_HUNKS}; split it")
    for file in files:
        check_path(file.old_path)
        check_path(file.new_path)
        _check_modes(file)
        _check_names(file)
        _check_lines(file)


def check_path(path: str) -> None:
    """Refuse a path that is not plainly a file inside the tree. Raises PatchRejected."""
    shown = path[:200].encode("unicode_escape").decode("ascii") or "(empty)"
    if not path or len(path) > MAX_PATH:
        raise PatchRejected(f"a path has 1 to {MAX_PATH} characters", file=shown)
    if not _PLAIN.fullmatch(path):
        raise PatchRejected(
            "a path may hold printable ASCII only, no backslash and no quote; rename it", file=shown
        )
    if path.startswith("/"):
        raise PatchRejected("an absolute path; paths are relative to the tree", file=shown)
    for part in path.split("/"):
        bare = part.split(":")[0].rstrip(". ")
        if part in ("", ".", ".."):
            raise PatchRejected(
                f'the path has a part "{part}" and may leave the tree; write it plainly', file=shown
            )
        if part != part.strip():
            raise PatchRejected("a part of the path begins or ends with a blank; rename it", file=shown)
        if _DOT_GIT.fullmatch(bare):
            raise PatchRejected("the path reaches into git's own directory; leave it out", file=shown)
        if bare.lower() in _GITS_OWN:
            raise PatchRejected("this file tells git how to treat the tree; leave it out", file=shown)


def _check_modes(file: FileDiff) -> None:
    for mode in (file.old_mode, file.new_mode):
        if mode and mode not in MODES:
            what = _STRANGE_MODES.get(mode, "neither a plain file nor a script")
            raise PatchRejected(
                f"mode {mode[:20]} is {what}; only 100644 and 100755 are allowed, leave it out",
                file=file.path,
            )
    if file.kind in ("modified", "renamed", "copied") and bool(file.old_mode) != bool(file.new_mode):
        raise PatchRejected(
            "a change of mode that names one mode only; send what git format-patch wrote", file=file.path
        )


def _check_names(file: FileDiff) -> None:
    if file.kind not in ("renamed", "copied") and file.old_path != file.new_path:
        raise PatchRejected(
            f"its diff also calls it {file.old_path}; send what git format-patch wrote", file=file.path
        )


def _check_lines(file: FileDiff) -> None:
    if file.kind in ("added", "deleted") and len(file.hunks) > 1:
        raise PatchRejected("the diff of a new file is one hunk, and so is a deleted one's", file=file.path)
    for hunk in file.hunks:
        if any(len(line) > MAX_LINE for line in hunk.lines):
            raise PatchRejected(
                f"a line is longer than {MAX_LINE} characters; leave it out", file=file.path, hunk=hunk.header
            )
        if any("\0" in line for line in hunk.lines):
            raise PatchRejected(
                "a line holds a NUL byte, which makes its file a binary one; leave it out",
                file=file.path,
                hunk=hunk.header,
            )
        wrong_side = {"added": ("-", " "), "deleted": ("+", " ")}.get(file.kind, ())
        if wrong_side and any(line.startswith(wrong_side) for line in hunk.lines):
            raise PatchRejected(
                f"the diff of an {file.kind} file has lines of both sides", file=file.path, hunk=hunk.header
            )
