# SPDX-License-Identifier: GPL-2.0-or-later
"""Tracepoint records: the fields of each, by the kernel's own description in the file, and their values in samples.

The section is laid out in tools/perf/util/trace-event-info.c, the description of one event as its `format` file in
tracefs (both of Linux 6.1). A guest wrote it: sizes are checked against its end, fields against the sample's.
"""

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workers.collect.perfdata_records import Integers, Records, SampleColumns
from workers.errors import ProfileUnreadable

_MAGIC = b"\x17\x08Dtracing"
_NAMED = (b"header_page\0", b"header_event\0")
_MOST_EVENTS = 4096
_NAME = re.compile(r"^name: (\S{1,100})$", re.MULTILINE)
_ID = re.compile(r"^ID: (\d{1,9})$", re.MULTILINE)
_FIELD = re.compile(
    r"^\s*field:[^;\n]*?(\w+)(?:\[[^\]\n]*\])?;\s*offset:(\d{1,6});\s*size:(\d{1,6});\s*signed:([01]);",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Tracepoint:
    """One event: its number in this kernel, and of each field its offset and size in bytes."""

    name: str
    number: int
    fields: Mapping[str, tuple[int, int]]


def read_tracepoints(section: bytes) -> dict[str, Tracepoint]:
    """Return the tracepoints that a perf.data describes, by name. Raises ProfileUnreadable when it describes none."""
    tracepoints = {}
    try:
        for text in _formats(section):
            name, number = _NAME.search(text), _ID.search(text)
            if name and number:
                fields = {field[1]: (int(field[2]), int(field[3])) for field in _FIELD.finditer(text)}
                tracepoints[name[1]] = Tracepoint(name[1], int(number[1]), fields)
    except (struct.error, ValueError) as exc:
        raise ProfileUnreadable("this perf.data describes its tracepoints beyond its end") from exc
    if not tracepoints:
        raise ProfileUnreadable("this perf.data does not describe its tracepoints")
    return tracepoints


def _formats(section: bytes) -> Iterator[str]:
    """The `format` texts: first ftrace's own, then by system."""
    if not section.startswith(_MAGIC):
        return
    # Version, then a byte each for endianness and the size of long, then the page's size.
    at = section.index(b"\0", len(_MAGIC)) + 1 + 2 + 4
    for name in _NAMED:
        if section[at : at + len(name)] != name:
            raise ValueError(name)
        _, at = _sized(section, at + len(name))
    at, texts = _several(section, at)
    yield from texts
    (systems,) = struct.unpack_from("<I", section, at)
    at += 4
    for _ in range(min(systems, _MOST_EVENTS)):
        at, texts = _several(section, section.index(b"\0", at) + 1)
        yield from texts


def _several(section: bytes, at: int) -> tuple[int, list[str]]:
    (count,) = struct.unpack_from("<I", section, at)
    if count > _MOST_EVENTS:
        raise ValueError(count)
    at, texts = at + 4, []
    for _ in range(count):
        text, at = _sized(section, at)
        texts.append(text.decode(errors="replace"))
    return at, texts


def _sized(section: bytes, at: int) -> tuple[bytes, int]:
    (size,) = struct.unpack_from("<Q", section, at)
    begin = at + 8
    if size > len(section) - begin:
        raise ValueError(size)
    return section[begin : begin + size], begin + size


def samples_of(records: Records, samples: SampleColumns, point: Tracepoint) -> Integers:
    """Return indices of the samples that are of a tracepoint."""
    # Each begins with its number, the field common_type.
    numbers = _gather(records, samples, np.arange(len(samples.raw)), 0, 2)
    return np.flatnonzero((numbers == point.number) & (samples.raw_size >= 2))


def field_of(
    records: Records, samples: SampleColumns, chosen: Integers, point: Tracepoint, field: str
) -> NDArray[np.uint64]:
    """Return a number in each of these samples of a tracepoint. Raises ProfileUnreadable when there is no such field."""
    offset, size = point.fields.get(field, (0, 0))
    if size not in (1, 2, 4, 8):
        raise ProfileUnreadable(f"tracepoint {point.name} of this kernel has no number {field}")
    if (samples.raw_size[chosen] < offset + size).any():
        raise ProfileUnreadable(f"this perf.data has samples of {point.name} shorter than their fields")
    return _gather(records, samples, chosen, offset, size)


def _gather(
    records: Records, samples: SampleColumns, chosen: Integers, offset: int, size: int
) -> NDArray[np.uint64]:
    """Little-endian numbers at an offset of samples' raw data; 0 in samples that are too short."""
    data = np.frombuffer(records.raw, np.uint8)
    numbers = np.zeros(len(chosen), np.uint64)
    long = samples.raw_size[chosen] >= offset + size
    at = samples.raw[chosen][long] + offset
    for place in range(size):
        numbers[long] |= data[at + place].astype(np.uint64) << np.uint64(8 * place)
    return numbers
