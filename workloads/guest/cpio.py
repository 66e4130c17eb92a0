# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes the "newc" cpio that the kernel unpacks as its first file system.

Our own writer, because two archives of equal content must be equal bytes on
every machine and for every user: no clocks, no owners, no device nodes on disk.
Source: Documentation/driver-api/early-userspace/buffer-format.rst of the kernel.
"""

import os
import stat
from dataclasses import dataclass, field
from pathlib import PurePosixPath


@dataclass(frozen=True, slots=True)
class CpioEntry:
    """One file: its mode (type and permissions), content, and device number if it is a node."""

    mode: int
    data: bytes = b""
    device: int = 0


@dataclass(slots=True)
class Archive:
    """Collects files by absolute path; parents are made as they are needed."""

    entries: dict[str, CpioEntry] = field(default_factory=dict)

    def directory(self, path: str, mode: int = 0o755) -> None:
        """Add a directory and its parents."""
        self._put(path, CpioEntry(stat.S_IFDIR | mode))

    def file(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """Add a regular file."""
        self._put(path, CpioEntry(stat.S_IFREG | mode, data))

    def link(self, path: str, to: str) -> None:
        """Add a symbolic link at `path` that points to `to`."""
        self._put(path, CpioEntry(stat.S_IFLNK | 0o777, os.fsencode(to)))

    def character_device(self, path: str, major: int, minor: int, mode: int = 0o600) -> None:
        """Add a device node, which needs no privilege here."""
        self._put(path, CpioEntry(stat.S_IFCHR | mode, device=os.makedev(major, minor)))

    def _put(self, path: str, entry: CpioEntry) -> None:
        name = path.strip("/")
        for parent in reversed(PurePosixPath(name).parents[:-1]):
            self.entries.setdefault(str(parent), CpioEntry(stat.S_IFDIR | 0o755))
        self.entries[name] = entry

    def pack(self) -> bytes:
        """The archive's bytes: entries by name, so that parents come before their children."""
        parts = [
            _member(ino, name, entry) for ino, (name, entry) in enumerate(sorted(self.entries.items()), 1)
        ]
        parts.append(_member(0, "TRAILER!!!", CpioEntry(0)))
        # The kernel takes the next archive from any multiple of four after this one.
        return b"".join(parts)


def _member(ino: int, name: str, entry: CpioEntry) -> bytes:
    """Header, name and data of one entry, each padded to four bytes."""
    encoded = os.fsencode(name) + b"\0"
    links = 2 if stat.S_ISDIR(entry.mode) else 1
    device = (os.major(entry.device), os.minor(entry.device))
    numbers = (ino, entry.mode, 0, 0, links, 0, len(entry.data), 0, 0, *device, len(encoded), 0)
    header = b"070701" + b"".join(b"%08X" % number for number in numbers)
    return _padded(header + encoded) + _padded(entry.data)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
