# SPDX-License-Identifier: GPL-2.0-or-later
"""The records of a perf.data, as columns: where each is, and what samples and other records say.

The layouts are those of include/uapi/linux/perf_event.h (enum perf_event_type). All positions are in words of 8 bytes
from the first record on: records are whole words. A record that claims more than it holds makes the file unreadable; a
record that the end of the file cuts off is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lab.runs import guest_limits
from workers.collect.perfdata_header import Attr, Frame
from workers.errors import ProfileUnreadable

Integers = NDArray[np.int64]
Words = NDArray[np.uint64]

MOST_RECORDS = guest_limits.PROFILE_RECORDS
MMAP, LOST, COMM, THROTTLE, FORK, SAMPLE, MMAP2, LOST_SAMPLES, KSYMBOL = 1, 2, 3, 5, 7, 9, 10, 13, 17
_AUXTRACE, _COMPRESSED, _COMPRESSED2 = 71, 81, 83
_REFUSED = {_AUXTRACE: "AUX traces", _COMPRESSED: "compressed records", _COMPRESSED2: "compressed records"}

# perf_event_sample_format: the fields before the callchain, in the order of their words.
_IP, _TID, _TIME, _READ, _CALLCHAIN, _ID, _CPU, _STREAM, _IDENTIFIER = (
    *(1 << 0, 1 << 1, 1 << 2, 1 << 4, 1 << 5, 1 << 6, 1 << 7, 1 << 9, 1 << 16),
)
_ADDR, _PERIOD, _RAW = 1 << 3, 1 << 8, 1 << 10
_FIELDS = (_IDENTIFIER, _IP, _TID, _TIME, _ADDR, _ID, _STREAM, _CPU, _PERIOD)
# What follows the time in the sample_id at the end of the other records.
_AFTER_TIME = (_ID, _STREAM, _CPU, _IDENTIFIER)
# perf_event_read_format.
_ENABLED, _RUNNING, _VALUE_ID, _GROUP, VALUE_LOST = 1, 2, 4, 8, 16


@dataclass(frozen=True, slots=True)
class Records:
    """The positions of records: first word, width in words, type and misc of each; truncated: why some are missing."""

    raw: memoryview
    words: Words
    at: Integers
    width: Integers
    kind: NDArray[np.uint32]
    misc: NDArray[np.uint16]
    truncated: str

    def of(self, *kinds: int) -> Integers:
        """Return indices of the records of these types."""
        return np.flatnonzero(np.isin(self.kind, kinds))

    def body(self, index: int) -> memoryview:
        """Return a record's bytes behind its header."""
        at = int(self.at[index])
        return self.raw[8 * at + 8 : 8 * (at + int(self.width[index]))]


@dataclass(frozen=True, slots=True)
class SampleColumns:
    """Columns, one entry a sample: process, thread, time in ns (or order), CPU; chain: first word and words of it.

    A sample without a callchain has its instruction pointer for one. raw: first byte and size of what a tracepoint
    recorded; no bytes if the sample is of no tracepoint. event: the number of its event, as ids of Attr; 0 if it names none.
    """

    pid: Integers
    tid: Integers
    time: Words
    cpu: Integers
    chain: Integers
    length: Integers
    raw: Integers
    raw_size: Integers
    event: Words

    def only(self, chosen: Integers) -> SampleColumns:
        """Return the samples with these indices."""
        return SampleColumns(*(getattr(self, name)[chosen] for name in self.__slots__))


def walk(data: bytes, frame: Frame) -> Records:
    """Go from record to record. Raises ProfileUnreadable for sizes that no record has, and kinds we cannot skip."""
    count = (frame.end - frame.begin) // 8
    raw = memoryview(data)[frame.begin : frame.begin + 8 * count]
    places, end = _places(raw.cast("H"), frame.begin)
    truncated = frame.truncated
    if end > count or (frame.end - frame.begin) % 8:
        if end > count:
            places.pop()
        truncated = truncated or "the last record runs over the end of the records"
    words = np.frombuffer(raw, "<u8")
    at = np.array(places, np.int64)
    head = words[at]
    kind = (head & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    for number, what in _REFUSED.items():
        if (kind == number).any():
            raise ProfileUnreadable(f"this perf.data holds {what}, which are not read here")
    misc = (head >> np.uint64(32)).astype(np.uint16)
    width = (head >> np.uint64(51)).astype(np.int64)
    return Records(raw, words, at, width, kind, misc, truncated)


def _places(halves: memoryview, begin: int) -> tuple[list[int], int]:
    """First word of each record, and the word behind the last one, which may be behind the end."""
    places = []
    at, end = 0, len(halves)
    while at < end:
        size = halves[at + 3]
        if size < 8 or size & 7:
            raise ProfileUnreadable(f"this perf.data has a record of {size} bytes at {begin + 2 * at}")
        places.append(at >> 2)
        at += size >> 1
        if len(places) > MOST_RECORDS:
            raise ProfileUnreadable(f"this perf.data has more than {MOST_RECORDS} records")
    return places, at >> 2


def read_samples(records: Records, attrs: Sequence[Attr]) -> SampleColumns:
    """Return all samples, in the order of the file. Raises ProfileUnreadable when they are shorter than they declare."""
    chosen = records.of(SAMPLE)
    if not len(chosen):
        none = np.zeros(0, np.int64)
        words = none.astype(np.uint64)
        return SampleColumns(none, none, words, none, none, none, none, none, words)
    layouts = _distinct(attrs, lambda attr: (attr.sample_type, attr.read_format))
    parts = [
        _columns(records, chosen[mask], attr)
        for mask, attr in _by_layout(records, chosen, layouts, "samples", _place_in_sample)
    ]
    order = np.argsort(np.concatenate([part[0] for part in parts]), kind="stable")
    columns = [np.concatenate(column)[order] for column in zip(*(part[1:] for part in parts), strict=True)]
    return SampleColumns(*columns)


def of_one_event(samples: SampleColumns, attrs: Sequence[Attr]) -> Integers:
    """Return indices of the samples of the first event that has some. Raises ProfileUnreadable where nothing tells events apart."""
    sampled = [attr for attr in attrs if not attr.is_dummy]
    if len(sampled) < 2 or not len(samples.event):
        return np.arange(len(samples.event))
    if not samples.event.all():
        raise ProfileUnreadable("this perf.data has samples of several events, and nothing tells them apart")
    for attr in sampled:
        chosen = np.flatnonzero(np.isin(samples.event, np.array(attr.ids, np.uint64)))
        if len(chosen):
            return chosen
    raise ProfileUnreadable("this perf.data has samples of events that it does not describe")


def times(records: Records, chosen: Integers, attrs: Sequence[Attr]) -> Words:
    """Return the time of each of these records, none of them a sample; their order if the file has no times."""
    if not timed(attrs):
        return chosen.astype(np.uint64)
    stamps = np.zeros(len(chosen), np.uint64)
    layouts = _distinct(attrs, lambda attr: tuple(attr.sample_type & bit for bit in _AFTER_TIME))
    for mask, attr in _by_layout(records, chosen, layouts, "records", _place_in_trailer):
        back = 1 + sum(bool(attr.sample_type & bit) for bit in _AFTER_TIME)
        some = chosen[mask]
        if (records.width[some] < 1 + back).any():
            raise ProfileUnreadable("this perf.data has a record too short for its time")
        stamps[mask] = records.words[records.at[some] + records.width[some] - back]
    return stamps


def timed(attrs: Sequence[Attr]) -> bool:
    """Return whether all records have a time; otherwise their order is used."""
    return all(attr.sample_type & _TIME and attr.sample_id_all for attr in attrs)


def _distinct(
    attrs: Sequence[Attr], layout_of: Callable[[Attr], tuple[int, ...]]
) -> dict[tuple[int, ...], list[Attr]]:
    layouts: dict[tuple[int, ...], list[Attr]] = {}
    for attr in attrs:
        layouts.setdefault(layout_of(attr), []).append(attr)
    return layouts


def _place_in_sample(attr: Attr) -> int:
    """The word that names the event, from the record's first; 0 if none does."""
    for bit in (_IDENTIFIER, _ID):
        if attr.sample_type & bit:
            return 1 + _before(attr, bit)
    return 0


def _place_in_trailer(attr: Attr) -> int:
    """The word that names the event, from the record's end; 0 if none does at the same place in all."""
    return -1 if attr.sample_type & _IDENTIFIER else 0


def _by_layout(
    records: Records,
    chosen: Integers,
    layouts: dict[tuple[int, ...], list[Attr]],
    what: str,
    place: Callable[[Attr], int],
) -> Iterator[tuple[NDArray[np.bool_], Attr]]:
    """Yield the records of each layout; where layouts differ, the id in each record decides."""
    if len(layouts) == 1:
        yield np.ones(len(chosen), np.bool_), next(iter(layouts.values()))[0]
        return
    places = {place(attr) for group in layouts.values() for attr in group}
    if len(places) != 1 or 0 in places:
        raise ProfileUnreadable(f"this perf.data has {what} of several layouts, and nothing tells them apart")
    offset = places.pop()
    start = records.at[chosen] + (offset if offset > 0 else records.width[chosen] + offset)
    if (records.width[chosen] <= abs(offset)).any():
        raise ProfileUnreadable(f"this perf.data has {what} too short for their event's id")
    ids = records.words[start]
    left = np.ones(len(chosen), np.bool_)
    for group in list(layouts.values())[1:]:
        mask = np.isin(ids, np.array([number for attr in group for number in attr.ids], np.uint64))
        left &= ~mask
        yield mask, group[0]
    # Records that perf itself wrote name no event: they have the first layout.
    yield left, next(iter(layouts.values()))[0]


def _before(attr: Attr, bit: int) -> int:
    """Words of a sample's fields before the one of this bit."""
    return sum(bool(attr.sample_type & field) for field in _FIELDS[: _FIELDS.index(bit)])


def _columns(records: Records, chosen: Integers, attr: Attr) -> tuple[Integers | Words, ...]:
    """Return, for samples of one layout, the record's index, then the columns of SampleColumns."""
    if not attr.sample_type & _TID or not attr.sample_type & (_IP | _CALLCHAIN):
        raise ProfileUnreadable("this perf.data has samples that tell no thread, or no address")
    at, width, words = records.at[chosen], records.width[chosen], records.words
    fixed = sum(bool(attr.sample_type & field) for field in _FIELDS)
    if (width < 1 + fixed).any():
        raise ProfileUnreadable("this perf.data has samples shorter than their fields")

    def word(bit: int) -> Words:
        return words[at + 1 + _before(attr, bit)]

    task = word(_TID)
    time = word(_TIME) if attr.sample_type & _TIME else chosen.astype(np.uint64)
    cpu = word(_CPU) if attr.sample_type & _CPU else np.zeros(len(at), np.uint64)
    chain, length, behind = _chains(records, at, width, attr, 1 + fixed)
    raw, raw_size = _raw(records, behind, at + width, attr)
    low = np.uint64(0xFFFFFFFF)
    pid, tid = (task & low).astype(np.int64), (task >> np.uint64(32)).astype(np.int64)
    place = _place_in_sample(attr)
    event = words[at + place] if place else np.zeros(len(at), np.uint64)
    return chosen, pid, tid, time, (cpu & low).astype(np.int64), chain, length, raw, raw_size, event


def _chains(
    records: Records, at: Integers, width: Integers, attr: Attr, fixed: int
) -> tuple[Integers, Integers, Integers]:
    """First word and number of words of each callchain, and the word behind it in the record."""
    pointer = at + 1 + _before(attr, _IP)
    cursor = at + fixed
    if attr.sample_type & _READ:
        cursor = cursor + _values(records, cursor, at + width, attr.read_format)
    if not attr.sample_type & _CALLCHAIN:
        return pointer, np.ones(len(at), np.int64), cursor
    count = _count(records, cursor, at + width)
    behind = cursor + 1 + count
    if not attr.sample_type & _IP:
        return cursor + 1, count, behind
    return np.where(count > 0, cursor + 1, pointer), np.maximum(count, 1), behind


def _raw(records: Records, cursor: Integers, end: Integers, attr: Attr) -> tuple[Integers, Integers]:
    """First byte and size of what tracepoints recorded: 4 bytes hold the size, the data follows."""
    if not attr.sample_type & _RAW:
        return 8 * cursor, np.zeros(len(cursor), np.int64)
    if (cursor >= end).any():
        raise ProfileUnreadable("this perf.data has samples that end before their tracepoint's fields")
    size = (records.words[cursor] & np.uint64(0xFFFFFFFF)).astype(np.int64)
    if (size > 8 * (end - cursor) - 4).any():
        raise ProfileUnreadable("this perf.data has tracepoints' fields longer than their samples")
    return 8 * cursor + 4, size


def _values(records: Records, cursor: Integers, end: Integers, read_format: int) -> Integers | int:
    """Words that struct read_format takes."""
    head = sum(bool(read_format & bit) for bit in (_ENABLED, _RUNNING))
    each = 1 + sum(bool(read_format & bit) for bit in (_VALUE_ID, VALUE_LOST))
    if not read_format & _GROUP:
        return head + each
    return 1 + head + each * _count(records, cursor, end)


def _count(records: Records, cursor: Integers, end: Integers) -> Integers:
    """The number at the cursor, of words that follow it and must fit into the record."""
    if (cursor >= end).any():
        raise ProfileUnreadable("this perf.data has samples that end before their callchain")
    count = records.words[cursor]
    if (count > (end - cursor - 1).astype(np.uint64)).any():
        raise ProfileUnreadable("this perf.data has callchains longer than their samples")
    return count.astype(np.int64)
