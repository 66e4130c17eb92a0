# SPDX-License-Identifier: GPL-2.0-or-later
"""The sections of an untrusted ELF file: 64 bit, little-endian, as all kernels that are built here.

Time and memory are bounded by the size of the file: sections that lie outside it, or together are larger than it, are refused,
and names come from one table, each of limited length. The layouts are those of elf(5).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from kernels.errors import ArtifactCorrupt

MOST_SECTIONS = 1 << 16
_LONGEST_NAME = 256
HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_TYPE_AT, _RELOCATABLE = 16, 1
_IDENT = b"\x7fELF\x02\x01"
# If e_shnum or e_shstrndx do not fit, section 0 holds them.
_ELSEWHERE = 0xFFFF
NULL, NOTE, NOBITS = 0, 7, 8
ALLOCATED, EXECUTABLE, COMPRESSED = 0x2, 0x4, 0x800


class Readable(Protocol):
    """A file that can be read: a path, or a file that was opened for a reader in another process."""

    @property
    def name(self) -> str:
        """Its name, for messages."""

    def read_bytes(self) -> bytes:
        """Return its bytes. Raises OSError."""

    def stat(self) -> os.stat_result:
        """Return its size and more. Raises OSError."""


@dataclass(frozen=True, slots=True)
class Section:
    """One section. data: empty where the file has no bytes of it (bss)."""

    name: str
    kind: int
    flags: int
    address: int
    size: int
    offset: int
    data: memoryview


def sections(file: Readable) -> Iterator[Section]:
    """Yield the sections of an ELF file in its order. Raises ArtifactCorrupt."""
    try:
        data = memoryview(file.read_bytes())
        yield from _sections(data, file.name)
    except (OSError, struct.error) as exc:
        raise ArtifactCorrupt(f"{file.name} is not a readable ELF file: {exc}") from exc


def _sections(data: memoryview, name: str) -> Iterator[Section]:
    if bytes(data[: len(_IDENT)]) != _IDENT:
        raise ArtifactCorrupt(f"{name} is not a readable ELF file: it has no 64-bit ELF header")
    _, _, _, _, _, _, at, _, _, _, _, entry, count, names_in = HEADER.unpack_from(data)
    if not at:
        return
    if at > len(data):
        raise ArtifactCorrupt(f"{name} is not a readable ELF file: its section headers lie outside it")
    if entry != _SECTION.size:
        raise ArtifactCorrupt(f"{name} is not a readable ELF file: its section headers have {entry} bytes")
    first = _SECTION.unpack_from(data, at)
    count = count or first[5]
    names_in = first[6] if names_in == _ELSEWHERE else names_in
    if count > MOST_SECTIONS or at + count * _SECTION.size > len(data) or names_in >= count:
        raise ArtifactCorrupt(f"{name} is not a readable ELF file: it has {count} sections")
    names = bytes(_part(data, _SECTION.unpack_from(data, at + names_in * _SECTION.size), name))
    left = len(data)
    for place in range(at, at + count * _SECTION.size, _SECTION.size):
        header = _SECTION.unpack_from(data, place)
        part = _part(data, header, name)
        left -= len(part)
        if left < 0:
            raise ArtifactCorrupt(f"{name} has sections that overlap; build it again")
        yield Section(
            _name(names, header[0], name), header[1], header[2], header[3], header[5], header[4], part
        )


def _part(data: memoryview, header: tuple[int, ...], name: str) -> memoryview:
    _, kind, _, _, offset, size, *_ = header
    if kind in (NULL, NOBITS):
        return data[:0]
    if offset + size > len(data):
        raise ArtifactCorrupt(f"{name} is not a readable ELF file: a section lies outside it")
    return data[offset : offset + size]


def _name(names: bytes, at: int, name: str) -> str:
    end = names.find(b"\0", at, at + _LONGEST_NAME)
    if end < 0:
        raise ArtifactCorrupt(f"{name} is not a readable ELF file: a section's name has no end")
    return names[at:end].decode("ascii", "replace")


def is_relocatable(file: Readable) -> bool:
    """Return whether an ELF file is not linked yet, as modules are: its symbols are relative to their sections."""
    return int.from_bytes(file.read_bytes()[_TYPE_AT : _TYPE_AT + 2], "little") == _RELOCATABLE
