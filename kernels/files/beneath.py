# SPDX-License-Identifier: GPL-2.0-or-later
"""Write and remove files below one directory by names that a stranger chose, never through a link.

Each folder on the way is opened relative to the descriptor of the one above it, and links are not followed. So a path cannot lead out,
whatever earlier paths of the same tree have put into the directory.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kernels.errors import DiskFull, TreeUnreadable
from kernels.files.paths import check_path, shown

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_IN_THE_WAY = (errno.ELOOP, errno.ENOTDIR, errno.EEXIST, errno.EISDIR)


class Beneath:
    """One directory, kept open for as long as the block runs; paths are relative to it.

    Each method raises TreeUnreadable for a path that leaves the directory or meets a link or a file where it needs a folder.
    """

    def __init__(self, directory: Path) -> None:
        self._top = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def __enter__(self) -> Beneath:
        return self

    def __exit__(self, *_exc: object) -> None:
        os.close(self._top)

    def write(self, path: str, data: bytes, mode: int) -> None:
        """Make a new file, and the folders above it; nothing may exist at its path."""
        with self._place(path, make=True) as (folder, name):
            descriptor = os.open(name, _NEW, mode=0o600, dir_fd=folder)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                os.fchmod(descriptor, mode)

    def link(self, path: str, target: bytes) -> None:
        """Make a symbolic link. Its target is only ever followed inside a sandbox."""
        if not target or b"\0" in target:
            raise TreeUnreadable(
                f'the link "{shown(path)}" has no target that a path could be: it is not written'
            )
        with self._place(path, make=True) as (folder, name):
            os.symlink(target, os.fsencode(name), dir_fd=folder)

    def folder(self, path: str) -> None:
        """Make a folder, unless it exists."""
        with self._place(path, make=True) as (folder, name):
            os.close(_below(folder, name, make=True))

    def mark_absent(self, path: str) -> None:
        """Make overlayfs's mark for "not here", a character device 0/0; do nothing where a file hides the whole folder."""
        try:
            with self._place(path, make=True) as (folder, name):
                os.mknod(name, stat.S_IFCHR | 0o600, 0, dir_fd=folder)
        except _InTheWay:
            return

    def remove(self, path: str) -> None:
        """Remove a file or link, if it exists, and the folders above it that are then empty."""
        try:
            with self._place(path, make=False) as (folder, name):
                os.unlink(name, dir_fd=folder)
        except (FileNotFoundError, _InTheWay):
            return
        while "/" in path:
            path = path.rpartition("/")[0]
            try:
                with self._place(path, make=False) as (folder, name):
                    os.rmdir(name, dir_fd=folder)  # git knows no empty directories
            except (OSError, _InTheWay):
                return

    def set_time(self, path: str, seconds: float) -> None:
        """Set the times of a file or link itself."""
        with self._place(path, make=False) as (folder, name):
            os.utime(name, (seconds, seconds), dir_fd=folder, follow_symlinks=False)

    @contextmanager
    def _place(self, path: str, *, make: bool) -> Iterator[tuple[int, str]]:
        """Yield a descriptor of the folder that a path ends in, and the name in it."""
        check_path(path)
        *above, name = path.split("/")
        descriptor = os.dup(self._top)
        try:
            for part in above:
                below = _below(descriptor, part, make=make)
                os.close(descriptor)
                descriptor = below
            yield descriptor, name
        except OSError as exc:
            if exc.errno in (errno.ENOSPC, errno.EDQUOT):
                raise DiskFull(
                    "the disk filled up while a tree was written: free some space, then try again"
                ) from exc
            if exc.errno in _IN_THE_WAY:
                raise _InTheWay(
                    f'the tree holds something else where "{shown(path)}" should be: it is not written'
                ) from exc
            raise
        finally:
            os.close(descriptor)


class _InTheWay(TreeUnreadable):
    """A link or file where a folder is needed, or something where a new file is."""


def _below(folder: int, name: str, *, make: bool) -> int:
    if make:
        with suppress(FileExistsError):
            os.mkdir(name, 0o755, dir_fd=folder)
    return os.open(name, _FOLDER, dir_fd=folder)
