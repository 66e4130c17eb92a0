# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.errors import RecordCorrupt
from workloads.guest.records import KINDS, Record, RecordReader, encode_record, gather

# Written down by hand from the definition, not by our own encoder: crc32(b"outwalkhi\n") is 0x19e45507.
ONE = b"KPL1 1 out walk 3 19e45507\nhi\n\n"

names = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=40)
# A bye is the last record: the reader drops what follows it.
contents = st.lists(
    st.tuples(st.sampled_from(sorted(KINDS - {"bye"})), names, st.binary(max_size=200)), max_size=12
)


def test_a_record_is_read_as_it_is_defined() -> None:
    assert RecordReader().feed(ONE) == [Record(1, "out", "walk", b"hi\n")]


@given(contents, st.integers(1, 50))
def test_records_come_back_whatever_pieces_they_come_in(
    parts: list[tuple[str, str, bytes]], size: int
) -> None:
    records = [Record(seq, *part) for seq, part in enumerate(parts, 1)]
    stream = b"".join(map(encode_record, records))
    reader = RecordReader()
    received = [
        record for at in range(0, len(stream), size) for record in reader.feed(stream[at : at + size])
    ]
    reader.finish()
    assert received == records


@given(contents.filter(bool), st.data())
def test_no_flipped_bit_goes_unnoticed(parts: list[tuple[str, str, bytes]], data: st.DataObject) -> None:
    stream = bytearray(b"".join(encode_record(Record(seq, *part)) for seq, part in enumerate(parts, 1)))
    at = data.draw(st.integers(0, len(stream) - 1))
    stream[at] ^= 1 << data.draw(st.integers(0, 7))
    reader = RecordReader()
    try:
        received = reader.feed(bytes(stream))
        reader.finish()
    except RecordCorrupt:
        return
    # Some flips say the same in other words: a hex digit of the checksum in upper case.
    assert received == [Record(seq, *part) for seq, part in enumerate(parts, 1)]


def test_a_lost_record_is_named() -> None:
    later = encode_record(Record(3, "beat", "-", b""))
    with pytest.raises(RecordCorrupt, match=r"record 2 .*record 3 came in its place"):
        RecordReader().feed(ONE + later)


def test_a_stream_that_ends_inside_a_record_is_corrupt() -> None:
    reader = RecordReader()
    reader.feed(ONE[:-2])
    with pytest.raises(RecordCorrupt, match="ends inside"):
        reader.finish()


@pytest.mark.parametrize(
    "stream",
    [
        b"Kernel panic - not syncing\n",
        b"KPL1 1 rumour - 0 00000000\n\n",
        b"KPL1 1 out - -5 00000000\n",
        b"KPL1 1 out - 99999999999 00000000\n",
        b"x" * 600,
        b"KPL1 \xff out - 0 00000000\n\n",
    ],
)
def test_what_is_no_record_is_refused_at_its_header(stream: bytes) -> None:
    with pytest.raises(RecordCorrupt, match="record 1 "):
        RecordReader().feed(stream)


def test_a_steps_output_is_gathered_from_its_pieces() -> None:
    records = [
        Record(1, "out", "walk", b"a"),
        Record(2, "err", "walk", b"!"),
        Record(3, "out", "open", b"-"),
        Record(4, "out", "walk", b"b"),
    ]
    assert gather(records, "out", "walk") == b"ab"
