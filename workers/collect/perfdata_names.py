# SPDX-License-Identifier: GPL-2.0-or-later
"""Names of threads and files: the command of a thread at a time, and the file that a process had mapped at an address.

COMM and FORK records tell the first, MMAP and FORK records the second, in the order of their times, as in
tools/perf/util/{thread,maps}.c of Linux 6.1. A guest's file with more than MOST_EVENTS of them is refused.
"""

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from workers.collect.perfdata_header import Attr
from workers.collect.perfdata_records import COMM, FORK, KSYMBOL, MMAP, MMAP2, Records, times
from workers.errors import ProfileUnreadable

Integers = NDArray[np.int64]
Words = NDArray[np.uint64]

UNKNOWN = "[unknown]"
KERNEL_TEXT = "[kernel.kallsyms]"
MOST_EVENTS = 1 << 19
_MOST_MAPPED = 4096
_MOST_HELD = 1 << 20
_NAME_BYTES = 256
# Bits of a record's misc: who ran, a mapping of data, a mapping with the file's build id.
_MODE, _KERNEL, _USER = 7, 1, 2
_DATA = 1 << 13
_BUILD_ID = 1 << 14
_PAIR = struct.Struct("<II")
_FORK = struct.Struct("<IIII")
_MMAP = struct.Struct("<IIQQQ")
_KSYMBOL = struct.Struct("<QIHH")
_PAGE = 12
_TOP = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class NamedRange:
    """Addresses from start up to end, and the name of a frame in them."""

    start: int
    end: int
    frame: str
    path: str = ""
    offset: int = 0
    build_id: str = ""


@dataclass(frozen=True, slots=True)
class Story:
    """Events besides samples, in the order of time.

    Each event has its time; commands: (thread, name) or (thread, parent thread); spaces: (process, mapping or parent
    process). kernel: the kernel's own mappings, in the order of the file.
    """

    command_times: list[int]
    commands: list[tuple[int, str | int]]
    space_times: list[int]
    spaces: list[tuple[int, NamedRange | int]]
    kernel: list[NamedRange]


def read_story(records: Records, attrs: Sequence[Attr]) -> Story:
    """Return everything but samples and losses. Raises ProfileUnreadable for a record shorter than its fields."""
    chosen = records.of(COMM, FORK, MMAP, MMAP2, KSYMBOL)
    if len(chosen) > MOST_EVENTS:
        raise ProfileUnreadable(f"this perf.data tells of more than {MOST_EVENTS} processes and mappings")
    when = times(records, chosen, attrs)
    order = np.argsort(when, kind="stable")
    story = Story([], [], [], [], [])
    for index, time in zip(chosen[order].tolist(), when[order].tolist(), strict=True):
        kind, misc, body = int(records.kind[index]), int(records.misc[index]), records.body(index)
        try:
            _tell(story, kind, misc, body, time)
        except struct.error as exc:
            raise ProfileUnreadable(
                f"this perf.data has a record of type {kind} shorter than its fields"
            ) from exc
    if len(story.kernel) > _MOST_MAPPED:
        raise ProfileUnreadable(f"this perf.data has {len(story.kernel)} mappings of the kernel's own")
    return story


def _tell(story: Story, kind: int, misc: int, body: memoryview, time: int) -> None:
    if kind == COMM:
        _, tid = _PAIR.unpack_from(body)
        story.command_times.append(time)
        story.commands.append((tid, _text(body, _PAIR.size) or UNKNOWN))
    elif kind == FORK:
        pid, parent, tid, parent_thread = _FORK.unpack_from(body)
        if tid != parent_thread:
            story.command_times.append(time)
            story.commands.append((tid, parent_thread))
        if pid != parent:
            story.space_times.append(time)
            story.spaces.append((pid, parent))
    elif kind == KSYMBOL:
        address, size, _, _ = _KSYMBOL.unpack_from(body)
        if name := _text(body, _KSYMBOL.size):
            story.kernel.append(NamedRange(address, min(address + size, _TOP), name))
    elif misc & _MODE == _KERNEL:
        story.kernel.append(_mapped(kind, misc, body))
    elif misc & _MODE == _USER and not misc & _DATA:
        story.space_times.append(time)
        story.spaces.append((_PAIR.unpack_from(body)[0], _mapped(kind, misc, body)))


def _mapped(kind: int, misc: int, body: memoryview) -> NamedRange:
    _, _, start, size, offset = _MMAP.unpack_from(body)
    build_id, name_at = "", _MMAP.size
    if kind == MMAP2:
        # Here follow either device, inode and generation or the build id, then protection and flags.
        name_at += 32
        if misc & _BUILD_ID and len(body) >= name_at and 0 < body[_MMAP.size] <= 20:
            build_id = bytes(body[_MMAP.size + 4 : _MMAP.size + 4 + body[_MMAP.size]]).hex()
    path = _text(body, name_at)
    return NamedRange(start, min(start + size, _TOP), frame_of(path), path, offset, build_id)


def _text(body: memoryview, at: int) -> str:
    return bytes(body[at : at + _NAME_BYTES]).split(b"\0", 1)[0].decode(errors="replace")


def frame_of(path: str) -> str:
    """Return the name of a frame in a file without symbols: [ld.so], [vdso], [ext4]."""
    if path.startswith(KERNEL_TEXT):
        return KERNEL_TEXT
    name = path.strip("[]").rstrip("/").rpartition("/")[2].removesuffix(".ko")
    return f"[{name}]" if name else UNKNOWN


def latest(keys: Integers, whens: Words, wanted: Integers, at: Words) -> Integers:
    """Return for each wanted key the index of its last event at or before a time; -1 if there is none.

    keys, whens: of the events, in the order of time.
    """
    both = np.concatenate((keys, wanted))
    asks = np.arange(len(both)) >= len(keys)
    order = np.lexsort((asks, np.concatenate((whens, at)), both))
    place = np.where(asks[order], -1, np.arange(len(both)))
    last = order[np.maximum(np.maximum.accumulate(place), 0)]
    last[(place < 0) & ((both[last] != both[order]) | asks[last])] = -1
    indexes = np.empty(len(both), np.int64)
    indexes[order] = last
    return indexes[len(keys) :]


def commands_at(story: Story, tid: Integers, time: Words) -> tuple[list[str], Integers]:
    """Names, and for each sample the index of its command among them; thread 0 is always swapper."""
    current = {0: "swapper"}
    said: list[str] = []
    for thread, name in story.commands:
        current[thread] = name if isinstance(name, str) else current.get(name, UNKNOWN)
        said.append(current[thread])
    names = [UNKNOWN, "swapper", *dict.fromkeys(said)]
    index = {name: number for number, name in reversed(list(enumerate(names)))}
    # One entry more, for samples without any event: index -1 finds it.
    numbers = np.array([*(index[name] for name in said), 0], np.int64)
    threads = np.array([thread for thread, _ in story.commands], np.int64)
    commands = numbers[latest(threads, np.array(story.command_times, np.uint64), tid, time)]
    return names, np.where(tid == 0, 1, commands)


def spaces_at(story: Story, pid: Integers, time: Words) -> Integers:
    """Return for each sample the last event of its process's address space at its time; -1 if there is none."""
    processes = np.array([process for process, _ in story.spaces], np.int64)
    return latest(processes, np.array(story.space_times, np.uint64), pid, time)


@dataclass(slots=True)
class Space:
    """Disjoint mappings by address. shared: another process has this object too, so it must not change."""

    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    shared: bool = False

    def put(self, mapped: NamedRange) -> None:
        """Map over whatever is there."""
        first, last = bisect_right(self.ends, mapped.start), bisect_left(self.starts, mapped.end)
        pieces = [(mapped.start, mapped.end, mapped.frame)]
        if first < last and self.starts[first] < mapped.start:
            pieces.insert(0, (self.starts[first], mapped.start, self.names[first]))
        if first < last and self.ends[last - 1] > mapped.end:
            pieces.append((mapped.end, self.ends[last - 1], self.names[last - 1]))
        self.starts[first:last] = [piece[0] for piece in pieces]
        self.ends[first:last] = [piece[1] for piece in pieces]
        self.names[first:last] = [piece[2] for piece in pieces]

    def name(self, address: int) -> str:
        """Return the name of the file mapped at an address."""
        place = bisect_right(self.starts, address) - 1
        return self.names[place] if place >= 0 and address < self.ends[place] else UNKNOWN


def files_at(story: Story, moments: Integers, pages: Words) -> list[str]:
    """Return the names of frames in pages (address >> 12) just after events of address spaces, as spaces_at gives them."""
    order = np.argsort(moments, kind="stable")
    names = [UNKNOWN] * len(order)
    waiting = order[np.searchsorted(moments[order], 0) :].tolist()
    at = 0
    for number, space in enumerate(_replay(story)):
        while at < len(waiting) and moments[waiting[at]] == number:
            names[waiting[at]] = space.name(int(pages[waiting[at]]) << _PAGE)
            at += 1
        if at == len(waiting):
            break
    return names


def _replay(story: Story) -> Iterator[Space]:
    """Yield the address space that each event changes, after the event."""
    spaces: dict[int, Space] = {}
    held = 0
    for pid, what in story.spaces:
        space = spaces.get(pid)
        if isinstance(what, int):
            space = spaces.get(what)
            if space is None:
                space = Space()
            space.shared = True
            spaces[pid] = space
        elif space is None or space.shared:
            space = Space(space.starts[:], space.ends[:], space.names[:]) if space else Space()
            held += len(space.starts)
            spaces[pid] = space
        if isinstance(what, NamedRange) and what.end > what.start:
            space.put(what)
            held += 1
        if held > _MOST_HELD or len(space.starts) > _MOST_MAPPED:
            raise ProfileUnreadable("this perf.data has more mappings than processes have")
        yield space
