# SPDX-License-Identifier: GPL-2.0-or-later
"""Files of builds and runs by the names that the tables keep: below the state root of this machine, or in the store.

While another machine writes one, its last 64 KiB are in the cache: pages follow it from there.
"""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from django.conf import settings
from django.core.cache import cache

from kernels.errors import KernelsError
from lab.errors import FileGone, LabError, StoreLacks
from lab.storage.artifacts import PAPERS, fetch_papers
from lab.storage.store import Store, lab_store

TAIL_BYTES = 64 * 1024
# A tail that is not refreshed belongs to a machine that is gone.
TAIL_KEPT_S = 60
_PAPER = re.compile(rf"artifacts/([0-9a-f]{{64}})/({'|'.join(map(re.escape, sorted(PAPERS)))})")
_LOGS = "objects/logs/"
_STEP = 1 << 20


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of a file from `start` on, and the size of the whole as it is now."""

    data: bytes
    start: int
    size: int


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A file of a build or a run. name: below the state root. removed_at: when the retention policy took it away."""

    name: str
    removed_at: datetime | None = None

    def __str__(self) -> str:
        return self.name

    def piece(self, start: int, length: int) -> Piece:
        """Return at most `length` bytes from `start` on, which counts from the end if negative. Raises FileGone.

        Only the end of a file that another machine writes is known: the piece may begin later than asked.
        """
        try:
            return _here(settings.HOME / self.name, start, length)
        except OSError as exc:
            reason = exc.strerror or str(exc)
        piece = _tail(self.name, start, length)
        if piece is None:
            piece = self._stored(start, length)
        if piece is None:
            raise self._gone(reason)
        return piece

    def pieces(self) -> Iterator[bytes]:
        """Yield the whole file, as long as it is at the call. Raises FileGone before the first piece."""
        first = self.piece(0, _STEP)
        return self._from(first)

    def _from(self, first: Piece) -> Iterator[bytes]:
        yield first.data
        at = first.start + len(first.data)
        while at < first.size:
            more = self.piece(at, min(_STEP, first.size - at))
            if not more.data:
                return
            yield more.data
            at = more.start + len(more.data)

    def _stored(self, start: int, length: int) -> Piece | None:
        try:
            store = lab_store()
            if store is None or self.name.startswith("/"):
                return None
            return _in_store(store, self.name, start, length)
        except StoreLacks:
            return None
        except (LabError, KernelsError) as exc:
            raise FileGone(f"it cannot be read now: {exc}") from exc

    def _gone(self, reason: str) -> FileGone:
        if self.removed_at is not None:
            return FileGone(f"removed on {self.removed_at:%Y-%m-%d} by the retention policy", removed=True)
        return FileGone(reason)


def name_of(path: Path, home: Path) -> str:
    """The name of a file below a state root, as the tables keep it."""
    with suppress(ValueError):
        return str(path.relative_to(home))
    return str(path)


def name_in_store(name: str) -> str:
    """Return the file's name in the store."""
    return f"logs/{name.removeprefix(_LOGS)}" if name.startswith(_LOGS) else name


def put_tail(name: str, path: Path) -> None:
    """Publish the end of a file that this machine is writing; do nothing while the file does not exist."""
    with suppress(OSError):
        end = _here(path, -TAIL_BYTES, TAIL_BYTES)
        cache.set(_key(name), (end.start, end.data), TAIL_KEPT_S)


def drop_tail(name: str) -> None:
    """Drop the tail: the whole file is in the store now."""
    cache.delete(_key(name))


def _tail(name: str, start: int, length: int) -> Piece | None:
    kept = cache.get(_key(name))
    if kept is None:
        return None
    begin, data = kept
    size = begin + len(data)
    first = max(begin, size + start if start < 0 else min(start, size))
    return Piece(data[first - begin :][:length], first, size)


def _here(path: Path, start: int, length: int) -> Piece:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        first = file.seek(max(0, size + start) if start < 0 else min(start, size))
        return Piece(file.read(length), first, size)


def _in_store(store: Store, name: str, start: int, length: int) -> Piece | None:
    if paper := _PAPER.fullmatch(name):
        with suppress(KernelsError):
            papers = fetch_papers(store, settings.HOME / "papers", paper[1])
            return _here(papers.directory / paper[2], start, length)
        return None
    data, size = store.part(name_in_store(name), start, length)
    first = max(0, size + start) if start < 0 else min(start, size)
    return Piece(data, first, size)


def _key(name: str) -> str:
    # Caches such as memcached take no spaces and nothing long.
    return f"tail:{name[:200]}"
