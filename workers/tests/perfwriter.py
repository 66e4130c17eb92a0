# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes small perf.data files as `perf record` of Linux 6.1 would, for tests: `perf script` reads them too."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

IP, TID, TIME, READ, CALLCHAIN, ID, CPU, PERIOD, IDENTIFIER = (
    *(1 << 0, 1 << 1, 1 << 2, 1 << 4, 1 << 5, 1 << 6, 1 << 7, 1 << 8, 1 << 16),
)
PLAIN = IP | TID | TIME | CALLCHAIN
RAW = 1 << 10
TRACED = PLAIN | RAW
KERNEL, USER = 1, 2
IN_KERNEL, IN_USER = (1 << 64) - 128, (1 << 64) - 512
_ATTR_BYTES = 128


def record(kind: int, misc: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 8)
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def text(name: str) -> bytes:
    raw = name.encode() + b"\0"
    return raw + bytes(-len(raw) % 8)


def trailer(tid: int, time: int, pid: int | None = None) -> bytes:
    """The sample_id of PLAIN."""
    return struct.pack("<IIQ", tid if pid is None else pid, tid, time)


def comm(tid: int, name: str, time: int, *, pid: int | None = None) -> bytes:
    pid = tid if pid is None else pid
    return record(3, 0, struct.pack("<II", pid, tid) + text(name) + trailer(tid, time, pid))


def fork(pid: int, parent: int, time: int, *, tid: int | None = None, parent_tid: int | None = None) -> bytes:
    tid, parent_tid = tid or pid, parent_tid or parent
    return record(7, 0, struct.pack("<IIIIQ", pid, parent, tid, parent_tid, time) + trailer(parent_tid, time))


def mmap(pid: int, start: int, size: int, path: str, time: int, *, misc: int = USER) -> bytes:
    body = struct.pack("<IIQQQ", pid, pid, start, size, 0) + struct.pack("<IIQQII", 8, 1, 9, 0, 5, 2)
    return record(10, misc, body + text(path) + trailer(pid, time))


def kernel_mmap(start: int, size: int, path: str, *, offset: int = 0) -> bytes:
    body = struct.pack("<IIQQQ", 0xFFFFFFFF, 0, start, size, offset)
    return record(1, KERNEL, body + text(path) + trailer(0, 0))


def lost(count: int, time: int = 0) -> bytes:
    return record(2, 0, struct.pack("<QQ", 1, count) + trailer(0, time))


def lost_samples(count: int, time: int = 0) -> bytes:
    return record(13, 0, struct.pack("<Q", count) + trailer(0, time))


def throttle(time: int = 0) -> bytes:
    return record(5, 0, struct.pack("<QQQ", time, 1, 1) + trailer(0, time))


def sample(
    tid: int, time: int, chain: Sequence[int], *, ip: int | None = None, pid: int | None = None
) -> bytes:
    """A sample of PLAIN; chain: innermost first, with its markers."""
    real = [entry for entry in chain if entry < (1 << 64) - 4095]
    ip = ip if ip is not None else real[0]
    body = struct.pack("<QIIQQ", ip, tid if pid is None else pid, tid, time, len(chain))
    return record(9, KERNEL if ip >> 63 else USER, body + struct.pack(f"<{len(chain)}Q", *chain))


def event(tid: int, time: int, chain: Sequence[int], raw: bytes) -> bytes:
    """A sample of TRACED: one event of a tracepoint, with its fields."""
    body = struct.pack("<QIIQQ", chain[0], tid, tid, time, len(chain))
    body += struct.pack(f"<{len(chain)}Q", *chain) + struct.pack("<I", len(raw)) + raw
    return record(9, KERNEL, body)


def tracing(formats: Sequence[str]) -> bytes:
    """The section that describes tracepoints, all of one system."""
    texts = b"".join(struct.pack("<Q", len(text)) + text.encode() for text in formats)
    head = b"\x17\x08Dtracing0.6\0\0\x08" + struct.pack("<I", 4096)
    head += b"header_page\0" + struct.pack("<Q", 0) + b"header_event\0" + struct.pack("<Q", 0)
    return (
        head
        + struct.pack("<I", 0)
        + struct.pack("<I", 1)
        + b"lock\0"
        + struct.pack("<I", len(formats))
        + texts
    )


def attr(sample_type: int, read_format: int = 0, *, sample_id_all: bool = True) -> bytes:
    """cpu-clock at 997 Hz."""
    flags = sample_id_all << 18 | 1 << 10 | 1 << 8 | 1 << 9 | 1 << 13
    head = struct.pack("<IIQQQQQ", 1, _ATTR_BYTES, 0, 997, sample_type, read_format, flags)
    return head.ljust(_ATTR_BYTES, b"\0")


def perf_data(
    records: Sequence[bytes],
    *,
    attrs: Sequence[tuple[bytes, Sequence[int]]] = ((attr(PLAIN), (1,)),),
    features: Mapping[int, bytes] | None = None,
) -> bytes:
    """A whole file; features: by number."""
    features = features or {}
    ids_at = 104
    ids, entries = b"", b""
    for attribute, numbers in attrs:
        entries += attribute + struct.pack("<QQ", ids_at + len(ids), 8 * len(numbers))
        ids += struct.pack(f"<{len(numbers)}Q", *numbers)
    attrs_at = ids_at + len(ids)
    begin = attrs_at + len(entries)
    body = b"".join(records)
    flags = sum(1 << number for number in features)
    header = struct.pack(
        "<8s12Q",
        b"PERFILE2",
        *(104, _ATTR_BYTES + 16, attrs_at, len(entries), begin, len(body), 0, 0, flags, 0, 0, 0),
    )
    at = begin + len(body) + 16 * len(features)
    sections, contents = b"", b""
    for number in sorted(features):
        sections += struct.pack("<QQ", at + len(contents), len(features[number]))
        contents += features[number]
    return header + ids + entries + body + sections + contents


def string(value: str) -> bytes:
    """A perf_header_string."""
    raw = value.encode().ljust(64, b"\0")
    return struct.pack("<I", len(raw)) + raw
