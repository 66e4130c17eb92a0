# SPDX-License-Identifier: GPL-2.0-or-later
"""A repository of a stranger, who writes whatever objects they like into it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

from kernels.trees.git import COMMITTER, git_environment

Entry = tuple[bytes, bytes, str]  # mode, name, id
FILE, SCRIPT, LINK, FOLDER, MODULE = b"100644", b"100755", b"120000", b"40000", b"160000"
BLOB_TEXT = b"written by a stranger\n"


class Stranger:
    """A bare repository whose objects are written literally, without any of git's own checks."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True)
        self.git("init", "--quiet", "--bare", "--template=", "--initial-branch=main")
        self.blob = self.object("blob", BLOB_TEXT)

    def git(self, *arguments: str, data: bytes = b"") -> str:
        done = subprocess.run(
            ["git", f"--git-dir={self.path}", *arguments],
            input=data,
            env=git_environment(COMMITTER),
            check=True,
            capture_output=True,
        )
        return done.stdout.decode().strip()

    def object(self, kind: str, data: bytes) -> str:
        """Write an object as it stands, malformed or not; return its id."""
        return self.git("hash-object", "-w", "-t", kind, "--literally", "--stdin", data=data)

    def tree(self, entries: Iterable[Entry]) -> str:
        """Write a tree of just these entries, in this order."""
        return self.object(
            "tree", b"".join(b"%s %s\0%s" % (mode, name, bytes.fromhex(sha)) for mode, name, sha in entries)
        )

    def plain(self) -> str:
        """A tree as kernels have them: a Makefile and a folder."""
        folder = self.tree([(FILE, b"inode.c", self.blob)])
        return self.tree([(FILE, b"Makefile", self.blob), (FOLDER, b"fs", folder)])

    def commit(self, tree: str, branch: str = "main", *parents: str) -> str:
        """Commit a tree and set a branch to it."""
        over = [part for parent in parents for part in ("-p", parent)]
        commit = self.git("commit-tree", tree, *over, data=b"harmless looking\n")
        self.git("update-ref", f"refs/heads/{branch}", commit)
        return commit


def snapshot(top: Path) -> dict[str, tuple[int, bytes]]:
    """Everything below a folder: mode, and content or target; to show that nothing there has changed."""
    contents = {}
    for path in sorted(top.rglob("*")):
        mode = path.lstat().st_mode
        content = (
            str(path.readlink()).encode()
            if path.is_symlink()
            else path.read_bytes()
            if path.is_file()
            else b""
        )
        contents[str(path.relative_to(top))] = (mode, content)
    return contents
