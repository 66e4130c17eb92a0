# SPDX-License-Identifier: GPL-2.0-or-later
"""The frame of a perf.data: where its records are, what each event samples, who recorded it.

The format: tools/perf/Documentation/perf.data-file-format.txt; struct perf_event_attr: include/uapi/linux/perf_event.h
(both of Linux 6.1). A guest wrote the file, so nothing in it is trusted: every offset is checked against the file's end.
"""

import struct
from dataclasses import dataclass

from workers.errors import ProfileUnreadable

_MAGIC = b"PERFILE2"
# size, attr_size, attrs, data, event_types (offset and size each), flags of four words; the magic comes before.
_HEADER = struct.Struct("<8s12Q")
_HEADER_BYTES = 104
_SECTION = struct.Struct("<QQ")
# Of perf_event_attr: type, size, config, period, sample_type, read_format, flags.
_ATTR = struct.Struct("<IIQQQQQ")
_SAMPLE_ID_ALL = 1 << 18
# PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY.
_DUMMY = (1, 9)
_TRACING, _BUILD_ID, _RELEASE, _ARCH, _COMPRESSED = 1, 2, 4, 6, 27
_MOST_OF_A_FEATURE = 4 << 20
_MOST_ATTRS = 4096
# Of the record header, build_id_event: pid, build id (20 bytes, then its size), then the file's name.
_BUILD_ID_EVENT = struct.Struct("<IHHi20sB3x")
_BUILD_ID_SIZE = 1 << 15
_KERNEL = 1
# On these a kernel's addresses are those with the top bit set.
_MACHINES = {"x86_64", "aarch64", "riscv64"}


@dataclass(frozen=True, slots=True)
class Attr:
    """The sample layout of one event; ids: as samples name the event.

    is_dummy: it counts nothing, and only carries the records other than samples: perf adds one if it starts late (-D).
    """

    sample_type: int
    read_format: int
    sample_id_all: bool
    ids: tuple[int, ...]
    is_dummy: bool = False


@dataclass(frozen=True, slots=True)
class Frame:
    """A perf.data without its records, which are the bytes from `begin` to `end`.

    truncated: why records are missing at the end, "" if none are. release: `uname -r`, build_id: the kernel's in hex;
    "" when the file does not say. tracing: the section that describes tracepoints.
    """

    attrs: tuple[Attr, ...]
    begin: int
    end: int
    truncated: str
    release: str
    build_id: str
    tracing: bytes = b""


def read_frame(data: bytes) -> Frame:
    """Return the frame of a file. Raises ProfileUnreadable for what is not `perf record`'s, naming what it is instead."""
    _check_magic(data)
    _, size, attr_size, attrs_at, attrs_size, begin, length, _, _, *flags = _HEADER.unpack_from(
        data.ljust(_HEADER.size, b"\0")
    )
    if size == 16:
        raise ProfileUnreadable("this perf.data was written to a pipe; record it with -o into a file")
    if len(data) < _HEADER_BYTES or size < _HEADER_BYTES:
        raise ProfileUnreadable("this perf.data ends within its header")
    features = flags[0]
    if features >> _COMPRESSED & 1:
        raise ProfileUnreadable("this perf.data is compressed; record it without -z")
    attrs = _attrs(data, attr_size, attrs_at, attrs_size)
    if not _HEADER_BYTES <= begin <= len(data):
        raise ProfileUnreadable(f"this perf.data has its records at {begin}, outside its {len(data)} bytes")
    end = begin + length
    truncated = ""
    if not length:
        # perf writes the size last, so it was killed. What it had written is there.
        end, truncated = len(data), "perf record did not live to finish the file"
    elif end > len(data):
        end, truncated = len(data), f"the file ends {begin + length - len(data)} bytes before its records do"
    said = {} if truncated else _features(data, end, features)
    machine = _string(said.get(_ARCH, b""))
    if machine and machine not in _MACHINES:
        raise ProfileUnreadable(f"this perf.data was recorded on {machine[:40]!r}, which is not read here")
    return Frame(
        attrs,
        begin,
        end,
        truncated,
        release=_string(said.get(_RELEASE, b"")),
        build_id=_kernel_id(said.get(_BUILD_ID, b"")),
        tracing=said.get(_TRACING, b""),
    )


def _check_magic(data: bytes) -> None:
    magic = data[:8]
    if magic == _MAGIC[::-1]:
        raise ProfileUnreadable("this perf.data was written by a big-endian machine")
    if magic == b"PERFFILE":
        raise ProfileUnreadable("this perf.data is of the first format, which perf left in 2011")
    if magic != _MAGIC:
        reason = "it is empty" if not data else f"it begins with {magic!r}"
        raise ProfileUnreadable(f"this is not a perf.data: {reason}")


def _attrs(data: bytes, entry: int, at: int, size: int) -> tuple[Attr, ...]:
    """Read the entries: a perf_event_attr of any size, then the place of the event's ids."""
    least = _ATTR.size + _SECTION.size
    if not least <= entry <= 4096 or size % entry or at + size > len(data):
        raise ProfileUnreadable(f"this perf.data has its events ({size} bytes at {at}) outside the file")
    if not 1 <= size // entry <= _MOST_ATTRS:
        raise ProfileUnreadable(f"this perf.data has {size // entry} events")
    attrs = []
    for place in range(at, at + size, entry):
        kind, _, config, _, sample_type, read_format, flags = _ATTR.unpack_from(data, place)
        ids_at, ids_size = _SECTION.unpack_from(data, place + entry - _SECTION.size)
        if ids_size % 8 or ids_at + ids_size > len(data) or ids_size > 1 << 20:
            raise ProfileUnreadable("this perf.data has ids of an event outside the file")
        ids = struct.unpack_from(f"<{ids_size // 8}Q", data, ids_at)
        dummy = (kind, config) == _DUMMY
        attrs.append(Attr(sample_type, read_format, bool(flags & _SAMPLE_ID_ALL), ids, dummy))
    return tuple(attrs)


def _features(data: bytes, at: int, flags: int) -> dict[int, bytes]:
    """The features we read, by number; those outside the file are left out: none of them is needed."""
    features = {}
    for number in range(64):
        if not flags >> number & 1:
            continue
        if at + _SECTION.size > len(data):
            break
        begin, size = _SECTION.unpack_from(data, at)
        at += _SECTION.size
        if begin + size <= len(data) and number in (_TRACING, _BUILD_ID, _RELEASE, _ARCH):
            features[number] = data[begin : begin + min(size, _MOST_OF_A_FEATURE)]
    return features


def _string(feature: bytes) -> str:
    """A perf_header_string: its length, then zero-terminated text."""
    return feature[4:].split(b"\0", 1)[0][:200].decode(errors="replace")


def _kernel_id(feature: bytes) -> str:
    """The kernel's build id among those of the files that were sampled."""
    at = 0
    while at + _BUILD_ID_EVENT.size <= len(feature):
        _, misc, size, _, raw, length = _BUILD_ID_EVENT.unpack_from(feature, at)
        if size < _BUILD_ID_EVENT.size:
            break
        name = feature[at + _BUILD_ID_EVENT.size : at + size].split(b"\0", 1)[0]
        if misc & 7 == _KERNEL and name.startswith(b"[kernel.kallsyms]"):
            id_length = length if misc & _BUILD_ID_SIZE and 0 < length <= 20 else 20
            return bytes(raw[:id_length]).hex()
        at += size
    return ""
