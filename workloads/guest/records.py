# SPDX-License-Identifier: GPL-2.0-or-later
"""The records a guest sends home: framed, numbered and checksummed.

One record is a header line, its payload and a line feed:

    KPL1 <seq> <kind> <name> <length> <crc32>\\n<payload>\\n

seq counts up from 1 without a gap; name is a step or file name without blanks,
"-" if there is none; crc32 is zlib's, in hex, over kind, name and payload in a row.
`agent/record.c` writes the same; a file goes as several `file` records and ends with an empty one.
"""

import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass

from workloads.errors import RecordCorrupt

KINDS = frozenset({"hello", "step", "out", "err", "exit", "file", "beat", "bye"})
MAX_HEADER = 512
MAX_PAYLOAD = 1 << 20
"""The agent sends at most 32 KiB at once; more than this can only be damage."""
# Digits as the agent writes them, and names that a message and a terminal can show.
_HEADER = re.compile(r"KPL1 ([0-9]{1,10}) ([a-z]{1,8}) ([!-~]{1,400}) ([0-9]{1,8}) ([0-9a-f]{8})")


@dataclass(frozen=True, slots=True)
class Record:
    """One record as the guest sent it."""

    seq: int
    kind: str
    name: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class _Header:
    seq: int
    kind: str
    name: str
    length: int
    crc: int


class RecordReader:
    """Turns the byte stream of a guest into records, whatever the pieces it comes in."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._header: _Header | None = None
        self._last_seq = 0
        self._over = False

    def feed(self, data: bytes) -> list[Record]:
        """The records that `data` completes; what follows a bye is dropped. Raises RecordCorrupt, which names the record."""
        if self._over:
            return []
        self._buffer += data
        records = []
        while (record := self._next()) is not None:
            records.append(record)
            if record.kind == "bye":
                self._over = True
                self._buffer.clear()
                break
        return records

    def finish(self) -> None:
        """Say that the stream has ended. Raises RecordCorrupt if it ended inside a record."""
        if self._buffer or self._header is not None:
            raise self._corrupt(f"the stream ends inside it, {len(self._buffer)} bytes in")

    def _next(self) -> Record | None:
        if self._header is None:
            self._header = self._read_header()
        header = self._header
        if header is None or len(self._buffer) < header.length + 1:
            return None
        payload, end = bytes(self._buffer[: header.length]), self._buffer[header.length]
        del self._buffer[: header.length + 1]
        if end != ord("\n"):
            raise self._corrupt("its payload does not end where its length says")
        if checksum(header.kind, header.name, payload) != header.crc:
            raise self._corrupt("its checksum does not match its content")
        self._header, self._last_seq = None, header.seq
        return Record(header.seq, header.kind, header.name, payload)

    def _read_header(self) -> _Header | None:
        end = self._buffer.find(b"\n", 0, MAX_HEADER)
        if end < 0:
            if len(self._buffer) >= MAX_HEADER:
                raise self._corrupt("its header has no end")
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        fields = _HEADER.fullmatch(line.decode("ascii", "replace"))
        if fields is None:
            raise self._corrupt(f"its header cannot be read: {line[:80]!r}")
        seq, kind, name, length, crc = fields.groups()
        header = _Header(int(seq), kind, name, int(length), int(crc, 16))
        if kind not in KINDS or header.length > MAX_PAYLOAD:
            raise self._corrupt(f"its header makes no sense: {line[:80]!r}")
        if header.seq != self._last_seq + 1:
            raise self._corrupt(f"record {header.seq} came in its place, so some were lost")
        return header

    def _corrupt(self, why: str) -> RecordCorrupt:
        return RecordCorrupt(self._last_seq + 1, why)


def checksum(kind: str, name: str, payload: bytes) -> int:
    """The crc32 of a record."""
    return zlib.crc32(payload, zlib.crc32(f"{kind}{name}".encode()))


def encode_record(record: Record) -> bytes:
    """The wire form of one record, as the agent writes it."""
    crc = checksum(record.kind, record.name, record.payload)
    header = f"KPL1 {record.seq} {record.kind} {record.name} {len(record.payload)} {crc:08x}\n"
    return header.encode() + record.payload + b"\n"


def gather(records: Iterable[Record], kind: str, name: str) -> bytes:
    """All payload of one kind and name, put together: a step's whole output, or a file."""
    return b"".join(record.payload for record in records if record.kind == kind and record.name == name)
