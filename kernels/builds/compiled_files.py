# SPDX-License-Identifier: GPL-2.0-or-later
"""Keep what the compiler front compiled: one store for bases that the operator trusts, one for each other base.

A build reads the trusted store and that of its base, and writes only to a folder of its own. Files that the build of a base wrote are moved
into that base's store after it ended: so no build can place an object where builds over another base read it.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

TRUSTED = "trusted"
_FOLDER = re.compile(r"[0-9a-f]{2}")
_FILE = re.compile(r"[0-9a-f]{30,62}\.[ok]")
_ORIGIN = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_EVENT = re.compile(r"([a-z-]{1,40})(?: ([0-9a-f]{32,64}\.[ok]))?")
_DIGEST = 32
_MEASURED = ("corrupt", "refused", "unreachable")
# Bytes of one file, and of a build's list of events.
LARGEST_FILE, LARGEST_LIST = 256 << 20, 4 << 20


class CompiledFiles:
    """The stores below one folder, one subfolder for each origin.

    withdrawal: the token of the lab's last withdrawal of trust, to be set before a build. Each withdrawal has its own trusted
    store, so files that were trusted before it are not read.
    """

    def __init__(self, root: Path) -> None:
        self.root, self.withdrawal = root, ""
        # The names of files that builds of this process have added to the trusted store.
        self.added: list[str] = []

    def readable(self, origin: str) -> list[Path]:
        """Return the stores that a build of this origin reads: the trusted one, and its own."""
        return [self._store(name) for name in dict.fromkeys((TRUSTED, origin))]

    def take(self, origin: str, written: Path) -> Counter[str]:
        """Copy the files that a build wrote into its origin's store, and return the build's events by kind (see `follow`).

        Anything but whole files with names of the front's form is left, and counted as "refused".
        """
        counts = self.follow(origin, written)
        store = self._store(origin)
        for folder in sorted(_folders(written)):
            if not _FOLDER.fullmatch(folder):
                counts["refused"] += 1
                continue
            for path in sorted((written / folder).iterdir()):
                name = f"{folder}/{path.name}"
                data = _read(path, LARGEST_FILE) if _FILE.fullmatch(path.name) else b""
                if not is_whole(data):
                    counts["refused"] += 1
                elif not is_whole(self.read(origin, name)):
                    _write(store / name, data)
                    if origin == TRUSTED:
                        self.added.append(name)
        return counts

    def read(self, origin: str, name: str) -> bytes:
        """Return the bytes of a kept file, b"" where there is none. name: as <aa>/<rest>."""
        return _read(self._store(origin) / name, LARGEST_FILE)

    def add_trusted(self, name: str, data: bytes) -> bool:
        """Keep a file that another machine of the lab has kept as trusted; return False if it is not a file of the front."""
        folder, _, file = name.partition("/")
        if not (_FOLDER.fullmatch(folder) and _FILE.fullmatch(file) and is_whole(data)):
            return False
        if not is_whole(self.read(TRUSTED, name)):
            _write(self._store(TRUSTED) / name, data)
        return True

    def follow(self, origin: str, written: Path) -> Counter[str]:
        """Return a build's events by kind; mark the files that it used as used now, and remove corrupt and wrong ones.

        A build may report what it likes, so its reports of events that the lab measures itself are ignored.
        """
        counts = Counter[str]()
        events = b"" if written.is_symlink() else _read(written / "counts", LARGEST_LIST)
        for line in events.decode(errors="replace").splitlines():
            event = _EVENT.fullmatch(line)
            if event is None:
                continue
            if event[1] not in _MEASURED:
                counts[event[1]] += 1
            for store in self.readable(origin) if event[2] else ():
                kept = store / event[2][:2] / event[2][2:]
                if event[1] == "differs":
                    # If the build lies, the file is compiled again, no more.
                    kept.unlink(missing_ok=True)
                elif event[1] == "corrupt" and kept.exists() and not is_whole(_read(kept, LARGEST_FILE)):
                    kept.unlink()
                    counts["corrupt"] += 1
                elif event[1] in ("hit", "same"):
                    with suppress(FileNotFoundError):
                        os.utime(kept)
        return counts

    def trim(self, most_bytes: int) -> int:
        """Remove the least recently used files until all stores together fit; return the number of bytes removed."""
        files = list(_sizes(self.root))
        size, gone = sum(about.st_size for _, about in files), 0
        if size <= most_bytes:
            return 0
        # Small files that many compilations share are removed last.
        files.sort(key=lambda entry: (not entry[0].endswith(".o"), entry[1].st_mtime))
        for path, about in files:
            if size - gone <= most_bytes:
                break
            Path(path).unlink(missing_ok=True)
            gone += about.st_size
        return gone

    def _store(self, origin: str) -> Path:
        if not _ORIGIN.fullmatch(origin):
            raise ValueError(f"{origin!r} names no origin")
        if origin == TRUSTED and self.withdrawal:
            origin = f"{TRUSTED}-{self.withdrawal}"
        return self.root / origin


def is_whole(data: bytes) -> bool:
    """Return whether a kept file's bytes are those that the front wrote."""
    return (
        len(data) > _DIGEST
        and hashlib.blake2b(data[_DIGEST:], digest_size=_DIGEST).digest() == data[:_DIGEST]
    )


def _sizes(root: Path) -> Iterator[tuple[str, os.stat_result]]:
    for folder in root.glob("*/*"):
        # Another build may trim at the same time, and a store may be removed at any time.
        with suppress(FileNotFoundError), os.scandir(folder) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    if entry.is_file(follow_symlinks=False):
                        yield entry.path, entry.stat(follow_symlinks=False)


def _folders(folder: Path) -> list[str]:
    """Return the names of the folders in a path that a build wrote, without links; none if it is not a folder itself."""
    if folder.is_symlink():
        return []
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _read(path: Path, most: int) -> bytes:
    """Return a plain file's bytes; b"" for anything else, or more bytes."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_size > most:
            return b""
        with os.fdopen(os.dup(descriptor), "rb") as file:
            return file.read()
    finally:
        os.close(descriptor)


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.parent / f".{path.name}.{os.getpid()}"
    part.write_bytes(data)
    part.chmod(0o644)
    part.rename(path)
