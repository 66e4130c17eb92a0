# SPDX-License-Identifier: GPL-2.0-or-later
"""Limit how much disk one build may fill, in bytes and in files, watched from outside while it runs.

Counting a whole build takes a fraction of a second, which is too expensive for every check. So each check reads the file system's own
counters, which costs nothing, and the build's folders are counted only once the file system has filled by as much as the build may
still take; and now and then in any case, since other processes may free room meanwhile. Counting proceeds in small steps.
"""

import os
import stat
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_BLOCK = 512
# A build gets half of the space that is free when it starts, but never less than a usual build takes.
_LEAST_BYTES, _LEAST_FILES = 4 << 30, 200_000
_SLICE_S = 0.25
# Count regularly in any case, but seldom enough to use less than half a percent of a CPU.
_EVERY_S, _EVERY_COUNTS = 30.0, 200
_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class DiskUse:
    """Bytes and files: free ones of a file system, or those in use."""

    size: int
    files: int


def free_room(folder: Path) -> DiskUse:
    """Return the room left for the lab on a folder's file system; the number of files is huge if the file system counts none."""
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
        """Return whether the folders are too large; start a count if one is due, and count for up to a quarter of a second."""
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
        """Count again, one folder per step. A folder that cannot be read counts as over the limit, because it hides its contents."""
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
                    # An unfinished count may show that the limit is exceeded, never that less is used than before.
                    self._counted = DiskUse(max(self._counted.size, size), max(self._counted.files, files))
                    yield
            finally:
                os.close(root)
        self._counted = DiskUse(size, files)


def _look(root: int, path: str) -> tuple[list[str], DiskUse]:
    """Return the folders in a folder and the disk use of its entries, without following a link."""
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
