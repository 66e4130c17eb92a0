# SPDX-License-Identifier: GPL-2.0-or-later
"""A git repository of three files that stands in for a kernel tree."""

import subprocess
from pathlib import Path

INODE = "".join(f"line {number}\n" for number in range(1, 41))


def git(repository: Path, *arguments: str) -> str:
    command = [
        "git",
        "-C",
        str(repository),
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@example.org",
        *arguments,
    ]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def make_tiny_tree(path: Path) -> Path:
    """Two commits on main, the first tagged v6.1; fs/inode.c has 40 numbered lines."""
    (path / "fs").mkdir(parents=True)
    git(path.parent, "init", "-q", "-b", "main", str(path))
    (path / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 0\n")
    (path / "fs" / "inode.c").write_text(INODE)
    (path / "fs" / "dcache.c").write_text(INODE)
    git(path, "add", "-A")
    git(path, "commit", "-q", "-m", "first")
    git(path, "tag", "v6.1")
    return path


def diff(file: str, number: int, new: str) -> str:
    """A unified diff that replaces one of the 40 lines, with three lines of context."""
    context = range(number - 3, number + 4)
    body = "".join(f"-line {n}\n+{new}\n" if n == number else f" line {n}\n" for n in context)
    return f"--- a/{file}\n+++ b/{file}\n@@ -{number - 3},7 +{number - 3},7 @@\n{body}"
