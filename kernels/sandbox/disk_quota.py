# SPDX-License-Identifier: GPL-2.0-or-later
"""Limit how much disk one build may fill, in bytes and in files, watched from outside while it runs.

The count of a whole build takes a fraction of a second, which is too dear for every look. So the file system's own counters are
looked at, for nothing, and the build's folders are counted only once the file system has filled by as much as the build may
still take; and now and then in any case, in case somebody else frees room meanwhile. A count goes on in small pieces.
"""

import os
import stat
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_BLOCK = 512
# Of what is free when a build starts it gets half, but never less than a usual build takes.
_LEAST_BYTES, _LEAST_FILES = 4 << 30, 200_000
_SLICE_S = 0.25
# A count in any case, but so seldom that it stays below half a percent of a CPU.
_EVERY_S, _EVERY_COUNTS = 30.0, 200
_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class DiskUse:
    """Bytes and files: free ones of a file system, or those in use."""

    size: int
    files: int


def free_room(folder: Path) -> DiskUse:
    """Return what is left for the lab on the file system of a folder; one that does not count files has many."""
    status = os.statvfs(folder)
    return DiskUse(status.f_bavail * status.f_frsize, status.f_favail if status.f_files else 1 << 60)


class Quota:
    """The disk limit of one build's folders: `most` bytes, and at most half of the space that was free at first."""

    def __init__(self, folders: Sequence[Path], most: DiskUse) -> None:
        self._folders = folders
        self._free = free_room(folders[0])
        self.most = DiskUse(
            min(most.size, max(self._free.size // 2, _LEAST_BYTES)),
            min(most.files, max(self._free.files // 2, _LEAST_FILES)),
        )
        self._counting: Iterator[None] | None = None
        self._counted = DiskUse(0, 0)
        self._next, self._spent = time.monotonic() + _EVERY_S, 0.0

    def exceeded(self) -> bool:
        """Return whether the folders are too large; check, and continue a count for a quarter of a second."""
        if self._counting is None and self._due():
            self._free, self._spent = free_room(self._folders[0]), 0.0
            self._counting = self._count()
        if self._counting is None:
            return False
        began = time.monotonic()
        while time.monotonic() - began < _SLICE_S:
            if next(self._counting, 1) == 1:
                self._counting = None
                break
            if self._is_over():
                return True
        self._spent += time.monotonic() - began
        self._next = time.monotonic() + max(_EVERY_S, _EVERY_COUNTS * self._spent)
        return self._is_over()

    def _due(self) -> bool:
        if time.monotonic() > self._next:
            return True
        free = free_room(self._folders[0])
        return (
            self._free.size - free.size > self.most.size - self._counted.size
            or self._free.files - free.files > self.most.files - self._counted.files
        )

    def _is_over(self) -> bool:
        return self._counted.size > self.most.size or self._counted.files > self.most.files

    def _count(self) -> Iterator[None]:
        """Count again, a folder at each step. A folder that cannot be looked into counts as too much: it hides what is in it."""
        size = files = 0
        for top in self._folders:
            root = os.open(top, _FLAGS)
            try:
                waiting = ["."]
                while waiting:
                    path = waiting.pop()
                    try:
                        within, inside = _look(root, path)
                    except FileNotFoundError:
                        continue  # removed since
                    except OSError:
                        self._counted = DiskUse(self.most.size + 1, self.most.files + 1)
                        return
                    size, files = size + inside.size, files + inside.files
                    waiting += within
                    # A count that is under way may show that it is too much already, never that it is less than before.
                    self._counted = DiskUse(max(self._counted.size, size), max(self._counted.files, files))
                    yield
            finally:
                os.close(root)
        self._counted = DiskUse(size, files)


def _look(root: int, path: str) -> tuple[list[str], DiskUse]:
    """Return the folders of a folder and how much its entries take, without following a link."""
    folder = os.open(path, _FLAGS, dir_fd=root)
    size = files = 0
    within = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                size, files = size + status.st_blocks * _BLOCK, files + 1
                if stat.S_ISDIR(status.st_mode):
                    within.append(f"{path}/{entry.name}")
    finally:
        os.close(folder)
    return within, DiskUse(size, files)
