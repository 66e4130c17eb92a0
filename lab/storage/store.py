# SPDX-License-Identifier: GPL-2.0-or-later
"""The store: where all machines of a lab keep artifacts, run files and sources. Without a store, each machine uses its HOME.

Names: `artifacts/<key>/<SHA-256>` and `…/metadata.json`, `runs/<id>-<attempt>/<file>`, `sources/<commit>.bundle`,
`logs/<file>`, `profiles/<aa>/<SHA-256>`, `compiled/<SHA-256>`. Errors of the libraries below are raised as ours, in one line.
"""

from __future__ import annotations

import errno
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import IO, Any

from django.conf import settings
from django.core.files import File
from django.core.files.base import ContentFile
from django.core.files.storage import storages

from lab.errors import StoreLacks, StoreRefused, StoreUnreachable
from lab.storage.directory import DiskRoom, StoreEntry, StoreStream
from lab.storage.store_settings import ALIAS

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+=-]{0,199}(?:/[A-Za-z0-9_][A-Za-z0-9_.+=-]{0,199}){0,7}")
_PROBE = b"kperflab writes here\n"


def lab_store() -> Store | None:
    """Return the store of this lab, None if it only has HOME. Raises StoreRefused if the setting names no store."""
    if settings.STORE_PROBLEM:
        raise StoreRefused(settings.STORE_PROBLEM)
    return Store(storages[ALIAS]) if ALIAS in settings.STORAGES else None


@dataclass(frozen=True, slots=True)
class Store:
    """A storage with our errors. All methods raise StoreUnreachable and StoreRefused; those that read, StoreLacks as well."""

    storage: Any

    @property
    def address(self) -> str:
        """Return the store's name for people."""
        return str(self.storage.address)

    def put(self, name: str, data: IO[bytes] | bytes) -> None:
        """Store a file under a name, replacing an older one."""
        with self._translated(name):
            content = ContentFile(data) if isinstance(data, bytes) else File(data)
            self.storage.save(_checked(name), content)

    @contextmanager
    def reading(self, name: str) -> Iterator[_Reader]:
        """The bytes of a file, one piece after another."""
        with self._translated(name):
            stream = self.storage.stream(_checked(name))
        try:
            yield _Reader(self, name, stream)
        finally:
            stream.close()

    def read(self, name: str, limit: int) -> bytes:
        """At most `limit` bytes from the beginning of a file."""
        with self.reading(name) as file:
            content = bytearray()
            while len(content) < limit and (piece := file.read(min(1 << 20, limit - len(content)))):
                content += piece
            return bytes(content)

    def part(self, name: str, start: int, length: int) -> tuple[bytes, int]:
        """Return at most `length` bytes from `start` on, which counts from the end if negative; and the size of the whole."""
        with self._translated(name):
            piece: tuple[bytes, int] = self.storage.part(_checked(name), start, length)
            return piece

    def has(self, name: str) -> bool:
        """Return whether there is such a file."""
        with self._translated(name):
            return bool(self.storage.exists(_checked(name)))

    def remove(self, name: str) -> None:
        """Delete a file if it exists."""
        with self._translated(name):
            self.storage.delete(_checked(name))

    def entries(self, prefix: str = "") -> Iterator[StoreEntry]:
        """Yield the files in a directory and below, in no order; all files without one.

        Files of other names than the lab gives are not the store's: drafts of killed processes, a file system's own.
        """
        with self._translated(prefix):
            for entry in self.storage.entries(_checked(prefix) if prefix else ""):
                if _NAME.fullmatch(entry.name):
                    yield entry

    def remove_drafts(self, before: datetime) -> None:
        """Remove files that processes were writing, and were killed, before this moment."""
        with self._translated(""):
            self.storage.remove_drafts(before)

    def reach(self) -> None:
        """Check that the store answers, without writing."""
        with self._translated(""):
            self.storage.check()

    def room(self) -> DiskRoom | None:
        """Return the used and free space of a directory's disk; None for a bucket."""
        with self._translated(""):
            room: DiskRoom | None = self.storage.room()
            return room

    def check(self) -> None:
        """Write a file, read it and remove it, to show any fault of the store."""
        name = f"check-{secrets.token_hex(8)}"
        with self._translated(name):
            self.storage.check()
        self.put(name, _PROBE)
        try:
            if self.read(name, 100) != _PROBE:
                raise StoreRefused(f"the store {self.address} does not give back what was written")
        finally:
            self.remove(name)

    @contextmanager
    def _translated(self, name: str) -> Iterator[None]:
        """Translate errors of the libraries into ours."""
        try:
            yield
        except FileNotFoundError as exc:
            raise StoreLacks(f"the store {self.address} has no {name}") from exc
        except OSError as exc:
            kind = (
                StoreRefused
                if exc.errno in (errno.EACCES, errno.EPERM, errno.EROFS, None)
                else StoreUnreachable
            )
            raise kind(f"the store {self.address}: {exc.strerror or exc}") from exc
        except Exception as exc:
            ours = self.storage.our_error(exc, name)
            if ours is None:
                raise
            raise ours from exc


@dataclass(frozen=True, slots=True)
class _Reader:
    """A stream that raises our errors instead of the library's."""

    store: Store
    name: str
    stream: StoreStream

    def read(self, amount: int) -> bytes:
        """The next bytes, b"" at the end."""
        with self.store._translated(self.name):
            return self.stream.read(amount)


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise StoreRefused(f'"{name[:100]!a}" is not a name of a file in the store')
    return name
