# SPDX-License-Identifier: GPL-2.0-or-later
"""A store that is a directory, behind Django's storage API; lab/storage/bucket.py is the other kind.

Besides Django's interface both list the files below a name, and return part of a file.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Protocol

from django.core.files import File
from django.core.files.storage import FileSystemStorage
from django.utils.deconstruct import deconstructible

from kernels.files.scratch import sync_directory

_CHUNK = 1 << 20
# The prefix of files that are being written.
_DRAFT = ".draft-"


@dataclass(frozen=True, slots=True)
class StoreEntry:
    """One file of the store: its name there, its size in bytes, and when it was written."""

    name: str
    size: int
    written_at: datetime


@dataclass(frozen=True, slots=True)
class DiskRoom:
    """Used and free bytes of the disk that a directory is on."""

    used: int
    free: int


class StoreStream(Protocol):
    """A file of the store as it is read."""

    def read(self, amount: int = -1, /) -> bytes:
        """Return the next bytes, or all remaining bytes without an amount."""

    def close(self) -> None:
        """Close the stream."""


@deconstructible(path="lab.storage.directory.DirectoryStorage")
class DirectoryStorage(FileSystemStorage):
    """Files below a directory. A complete file replaces an existing file of its name by one rename."""

    @property
    def address(self) -> str:
        """Return the store's name for people."""
        return str(self.location)

    def our_error(self, exc: Exception, name: str) -> None:
        """Return the lab's error for one of a library; a directory raises OSError alone, which the store knows."""
        return

    def get_available_name(self, name: str, max_length: int | None = None) -> str:
        """Return the name itself: an existing file is replaced."""
        return name

    def _save(self, name: str, content: File[bytes]) -> str:
        place = Path(self.path(name))
        descriptor, draft = self._open_draft(place.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                for chunk in content.chunks(_CHUNK):
                    file.write(chunk)
                file.flush()
                os.fchmod(file.fileno(), 0o644)
                os.fsync(file.fileno())
            Path(draft).replace(place)
        except BaseException:
            Path(draft).unlink(missing_ok=True)
            raise
        sync_directory(place.parent)
        return name

    def _open_draft(self, folder: Path) -> tuple[int, str]:
        while True:
            self.check()
            # Another process may remove the last file there just now, and the directory with it.
            with suppress(FileNotFoundError):
                folder.mkdir(parents=True, exist_ok=True)
                return tempfile.mkstemp(prefix=_DRAFT, dir=folder)

    def delete(self, name: str) -> None:
        """Remove a file, and the directories that are empty then; nothing happens where there is none."""
        place = Path(self.path(name))
        place.unlink(missing_ok=True)
        with suppress(OSError):
            for parent in place.relative_to(self.location).parents[:-1]:
                (Path(self.location) / parent).rmdir()

    def stream(self, name: str) -> IO[bytes]:
        """The file, to be read from its beginning."""
        return Path(self.path(name)).open("rb")

    def part(self, name: str, start: int, length: int) -> tuple[bytes, int]:
        """Return at most `length` bytes from `start` on, which counts from the end if negative; and the size of the whole."""
        with Path(self.path(name)).open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size + start) if start < 0 else min(start, size))
            return file.read(length), size

    def entries(self, prefix: str) -> Iterator[StoreEntry]:
        """Yield all files in a directory and below, "" for the whole store. Raises OSError without the store's own directory."""
        self.check()
        top = Path(self.location)
        for folder, _, names in os.walk(self.path(prefix) if prefix else top):
            for name in names:
                with suppress(FileNotFoundError):  # somebody removes what is listed
                    status = (path := Path(folder) / name).lstat()
                    written = datetime.fromtimestamp(status.st_mtime, UTC)
                    yield StoreEntry(str(path.relative_to(top)), status.st_size, written)

    def remove_drafts(self, before: datetime) -> None:
        """Remove the files that killed processes were writing before this moment."""
        old = [entry.name for entry in self.entries("") if entry.written_at < before]
        for name in old:
            if Path(name).name.startswith(_DRAFT):
                self.delete(name)

    def check(self) -> None:
        """Raise OSError where there is no such directory: an unmounted disk must not be replaced by an empty directory."""
        if not Path(self.location).is_dir():
            raise NotADirectoryError(
                errno.ENOTDIR, f"there is no directory {self.location}: create it, or mount it"
            )

    def room(self) -> DiskRoom:
        """Return the used and free space of its disk."""
        return room_of(Path(self.location))


def room_of(folder: Path) -> DiskRoom:
    """Return the used and free space of a directory's disk, by one system call. Raises OSError."""
    usage = shutil.disk_usage(folder)
    return DiskRoom(usage.used, usage.free)
