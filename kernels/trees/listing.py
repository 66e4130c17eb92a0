# SPDX-License-Identifier: GPL-2.0-or-later
"""List the files of a git tree, within limits, and refuse a tree that could not be written safely.

This check comes before every command that walks a stranger's whole tree: ten nested trees can name ten thousand million files,
and a blob of a few KiB can unpack to many GiB.
"""

import os
from functools import lru_cache
from pathlib import Path

from kernels.errors import OutputTooLong, TreeUnreadable
from kernels.files.paths import Places, shown
from kernels.trees.git import try_git
from kernels.trees.tarball import MAX_BYTES, MAX_FILE_BYTES, MAX_FILES

# A mode, a type, an id, a size and a path; kernels have about 130 bytes an entry.
MOST_LISTED = MAX_FILES * 400
MODES = frozenset({"100644", "100755", "120000", "160000"})
LIST_DEADLINE_S = 300.0
# A link's target is a path.
LONGEST_LINK = 4095


@lru_cache(maxsize=256)
def check_tree(repository: Path, tree_id: str) -> None:
    """Refuse a tree with bad, duplicate or conflicting paths, odd modes, too many files or too many bytes.

    Raises TreeUnreadable. A tree's id identifies its content, so one check is enough.
    """
    places, total = Places(), 0
    for entry in _entries(repository, tree_id):
        mode, size, path = entry
        places.add(path)
        if mode not in MODES:
            raise TreeUnreadable(
                f'"{shown(path)}" has the mode {mode[:20]}: a tree holds files, links and submodules'
            )
        if mode == "120000" and size > LONGEST_LINK:
            raise TreeUnreadable(
                f'the link "{shown(path)}" has a target of {size} bytes, at most {LONGEST_LINK} are allowed'
            )
        if size > MAX_FILE_BYTES:
            raise TreeUnreadable(
                f'"{shown(path)}" is larger than {MAX_FILE_BYTES >> 20} MiB: this is not a kernel tree'
            )
        total += size
        if total > MAX_BYTES:
            raise TreeUnreadable(
                f"the tree's files are more than {MAX_BYTES >> 30} GiB: this is not a kernel tree"
            )


def _entries(repository: Path, tree_id: str) -> list[tuple[str, int, str]]:
    """Return mode, size in bytes and path of each file; the size of a submodule is 0."""
    try:
        done = try_git(
            repository, "ls-tree", "-r", "-l", "-z", "--full-tree", "--end-of-options", tree_id,
            deadline_s=LIST_DEADLINE_S, most_output=MOST_LISTED,
        )  # fmt: skip
    except OutputTooLong as exc:
        raise _too_many() from exc
    if done.returncode:
        detail = done.stderr.decode(errors="replace")
        raise TreeUnreadable(f"the files of tree {tree_id[:12]} cannot be listed: it is damaged", detail)
    lines = os.fsdecode(done.stdout).split("\0")[:-1]
    if len(lines) > MAX_FILES:
        raise _too_many()
    return [_entry(line) for line in lines]


def _entry(line: str) -> tuple[str, int, str]:
    meta, _, path = line.partition("\t")
    mode, _, _, size = meta.split()
    if not size.isdigit() and size != "-":
        raise TreeUnreadable(f'"{shown(path)}" is named by the tree and missing from the repository')
    return mode, int(size) if size.isdigit() else 0, path


def _too_many() -> TreeUnreadable:
    return TreeUnreadable(f"the tree holds more than {MAX_FILES:,} files: this is not a kernel tree")
