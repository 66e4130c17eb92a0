# SPDX-License-Identifier: GPL-2.0-or-later
"""The segments of an ELF file, which a boot loads; they need not agree with its sections.

A section is only a description. A file can describe the code of one kernel and load another, and a build can produce a different file for
the boot. So segment bytes that no section describes are hashed too, and the file that boots must load the same as the described one.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from kernels.artifacts.elf_sections import ALLOCATED, HEADER, NOBITS, Readable, sections
from kernels.errors import ArtifactCorrupt

_NOTE = struct.Struct("<III")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_LOAD = 1
_MOST_SEGMENTS = 64
# A segment may begin with the file's own head, which says where the sections are; that may differ.
_HEAD_BYTES = HEADER.size
_BUILD_ID = 3
# A SHA-256; linkers write a SHA-1.
_LONGEST_ID = 32


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of the file that is loaded. about: flags, addresses and sizes as the loader uses them."""

    offset: int
    about: tuple[int, ...]
    data: memoryview


def segments(file: Readable) -> tuple[int, list[Segment]]:
    """Return the entry point and the loaded segments of an ELF file. Raises ArtifactCorrupt."""
    try:
        data = memoryview(file.read_bytes())
        _, _, _, _, entry, at, _, _, _, size, count, *_ = HEADER.unpack_from(data)
        if count > _MOST_SEGMENTS or (count and size != _SEGMENT.size):
            raise ArtifactCorrupt(f"{file.name} has {count} program headers of {size} bytes; no kernel has")
        headers = [_SEGMENT.unpack_from(data, at + number * size) for number in range(count)]
    except (OSError, struct.error) as exc:
        raise ArtifactCorrupt(f"{file.name} is not a readable ELF file: {exc}") from exc
    loaded = []
    for kind, flags, offset, address, physical, length, memory, _ in headers:
        if kind == _LOAD:
            if offset + length > len(data):
                raise ArtifactCorrupt(f"{file.name} is not a readable ELF file: a segment lies outside it")
            loaded.append(
                Segment(offset, (flags, address, physical, length, memory), data[offset : offset + length])
            )
    return entry, loaded


def undescribed(file: Readable) -> Iterator[tuple[int, bytes]]:
    """Yield first the entry point and the headers of all segments, then address and bytes of all loaded parts outside of hashed sections.

    A section counts as a description of its bytes only where the loader puts them at the section's own address.
    """
    entry, loaded = segments(file)
    yield entry, b"".join(repr(segment.about).encode() for segment in loaded)
    known = sorted(
        (section.offset, section.offset + len(section.data), section.address)
        for section in sections(file)
        if section.flags & ALLOCATED and section.kind != NOBITS and len(section.data)
    )
    for segment in loaded:
        address, end = segment.about[1], segment.offset + len(segment.data)
        at = max(segment.offset, _HEAD_BYTES)
        for begins, ends, where in known:
            if begins < segment.offset or ends > end or where - address != begins - segment.offset:
                continue
            if begins > at:
                yield (
                    address + at - segment.offset,
                    bytes(segment.data[at - segment.offset : begins - segment.offset]),
                )
            at = max(at, ends)
        if at < end:
            yield address + at - segment.offset, bytes(segment.data[at - segment.offset :])


def loaded_hash(file: Readable) -> str:
    """Return 64 hex digits over the entry point and all loaded bytes of a file except its own head. Raises ArtifactCorrupt."""
    entry, loaded = segments(file)
    digest = hashlib.sha256(f"{entry:x}\n".encode())
    for segment in loaded:
        skip = max(0, _HEAD_BYTES - segment.offset)
        digest.update(f"{segment.about}\n".encode())
        digest.update(segment.data[skip:])
    return digest.hexdigest()


def build_ids(notes: bytes) -> Iterator[slice]:
    """Yield the positions of the build ids in ELF notes such as /sys/kernel/notes."""
    at = 0
    # Each note: sizes of name and description, type; then both, each padded to 4 bytes.
    while at + _NOTE.size <= len(notes):
        name, described, kind = _NOTE.unpack_from(notes, at)
        begin = at + _NOTE.size + (name + 3) // 4 * 4
        if kind == _BUILD_ID and notes[at + _NOTE.size : begin] == b"GNU\0" and described <= _LONGEST_ID:
            yield slice(begin, begin + described)
        at = begin + (described + 3) // 4 * 4


def without_build_id(notes: bytes) -> bytes:
    """Return the notes of a kernel with the linker's build id blanked; entry points and everything else in them count."""
    kept = bytearray(notes)
    for place in build_ids(notes):
        kept[place] = bytes(len(kept[place]))
    return bytes(kept)
