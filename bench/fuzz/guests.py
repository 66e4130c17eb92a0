# SPDX-License-Identifier: GPL-2.0-or-later
"""Readers of what strangers' builds and guests leave: records, kernels, symbols, profiles, counters and consoles."""

import json
import math
import os
import random
import struct
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.fuzz.targets import Reader
from kernels.artifacts.elf import code_hash, read_build_id, read_release
from kernels.errors import ArtifactCorrupt
from lab.profiles.analysis.frame_tree import pack, unpack
from workers.collect.console_rules import FORMS
from workers.collect.counters import read_counters
from workers.collect.dmesg import EXCERPT_BYTES, MAX_FINDINGS, scan_console
from workers.collect.kernelsymbols import KernelSymbols
from workers.collect.perfdata import ExpectedKernel, read_perf_data, read_waits
from workers.collect.perfdata_tracing import read_tracepoints
from workers.collect.transcript import Transcript
from workers.errors import ProfileUnreadable
from workloads.catalog import load_catalog
from workloads.errors import OutputUnreadable, RecordCorrupt, RecordUnexpected, WorkloadFailed
from workloads.guest.greeting import read_hello
from workloads.guest.records import KINDS, Record, RecordReader, encode_record
from workloads.instruction_clock import Clock
from workloads.step import Purpose

_CATALOG = load_catalog()
_CLOCKS: tuple[tuple[Purpose, Clock], ...] = (
    ("measured", "wall"),
    ("verified", "wall"),
    ("profiled", "wall"),
    ("measured", "instructions"),
)
_CYCLICTEST = _CATALOG["cyclictest-bh"]
_LOADED = {"iteration": 0, "warmup": False, "values": {}, "flushes": 3, "function_call_interrupts": {}}
_MAP = b"ffffffff81000000 T _text\nffffffff81000100 T do_open\nffffffff81000200 t do_walk\nffffffff81000300 T _end\n"
_ADDRESSES = np.array([0, 1, 1 << 63, 0xFFFFFFFF81000101, (1 << 64) - 1], np.uint64)
# Numbers at the edges of what fields hold.
_WILD = (*_ADDRESSES.tolist(), 7, 8, 64, 0xFFFF, 1 << 31, (1 << 32) - 1, 1 << 53, (1 << 64) - 8)
_ODD = (b"NaN", b"-1", b"1e400", b"{}", b"[]", b'""', b"null", b"true", b"\\u0000", b"\xff", b"9" * 30, b'"')
_LONGEST_PAYLOAD = 16 << 10
_WORDS = (
    *FORMS,
    b"[    1.000000] ",
    b"[   T31] ",
    b"\r\n",
    b"\x1b[31m",
    b"Linux version ",
    b"+0x1/0x2",
    b": ",
)


@dataclass(frozen=True, slots=True)
class MemoryFile:
    """A file in memory, for readers that take files (kernels.artifacts.elf_sections.Readable)."""

    data: bytes
    name: str = "fuzz"

    def read_bytes(self) -> bytes:
        """Return all of it."""
        return self.data

    def stat(self) -> os.stat_result:
        """Return its size, and nothing else that is true."""
        return os.stat_result((0, 0, 0, 0, 0, 0, len(self.data), 0, 0, 0))


def feed_records(data: bytes) -> None:
    """Read a stream of records as a run does; its first two bytes choose the workload and what the run is for."""
    names = sorted(_CATALOG)
    workload = _CATALOG[names[data[0] % len(names)] if data else "showgids"]
    purpose, clock = _CLOCKS[data[1] % len(_CLOCKS) if len(data) > 1 else 0]
    if purpose == "verified" and not workload.verifies:
        purpose = "measured"
    if clock == "instructions" and workload.definition.counted.unfit:
        clock = "wall"
    reader, records = RecordReader(), []
    stream = data[2:]
    for at in range(0, len(stream), 1000):
        records += reader.feed(stream[at : at + 1000])
    if records:
        json.dumps(read_hello(records[0]))
    params = workload.resolve(next(iter(workload.presets)), {}, clock)
    plan = workload.plan(params, iterations=2, warmup=1, purpose=purpose, clock=clock)
    with tempfile.TemporaryDirectory() as place, Transcript(plan, Path(place)) as transcript:
        for record in records[1:]:
            transcript.take(record)
    readings = workload.read(records[1:], purpose=purpose, clock=clock, most=3)
    json.dumps([readings.extras, readings.line])
    assert len(readings.iterations) <= 3, "more iterations than the plan has"


def mutate_records(data: bytes, rng: random.Random) -> bytes:
    """Change, drop, double or swap whole records; checksums and numbers stay right."""
    try:
        records = RecordReader().feed(data[2:])
    except RecordCorrupt:
        records = []
    for _ in range(rng.randrange(1, 4)):
        _edit(records, rng)
    numbered = (Record(seq, old.kind, old.name, old.payload) for seq, old in enumerate(records, 1))
    return bytes([rng.randrange(256), rng.randrange(256)]) + b"".join(map(encode_record, numbered))


def _edit(records: list[Record], rng: random.Random) -> None:
    if not records:
        records.append(Record(1, "hello", "-", b'{"release":"6.1.0"}'))
        return
    at = rng.randrange(len(records))
    old = records[at]
    match rng.randrange(5):
        case 0:
            del records[at]
        case 1:
            records.insert(rng.randrange(len(records) + 1), old)
        case 2:
            records[at] = Record(old.seq, rng.choice(sorted(KINDS)), old.name, old.payload)
        case 3:
            records[at] = Record(old.seq, old.kind, rng.choice(records).name, old.payload)
        case _:
            payload = old.payload[:_LONGEST_PAYLOAD]
            place = rng.randrange(len(payload) + 1)
            payload = payload[:place] + rng.choice(_ODD) + payload[place + rng.randrange(8) :]
            records[at] = Record(old.seq, old.kind, old.name, payload)


def feed_cyclictest(data: bytes) -> None:
    """Read what stands before the first line "%" as cyclictest's JSON, the rest as the kernel's histogram of calls."""
    report, mark, calls = data.partition(b"\n%\n")
    printed = next(step.name for step in _CYCLICTEST.definition.steps if step.kind == "measure")
    records = [
        Record(1, "out", printed, json.dumps(_LOADED).encode()),
        Record(2, "file", "/tmp/cyclictest-0.json", report),
    ]
    if mark:
        records.append(Record(3, "file", "/tmp/calls.hist", calls))
    readings = _CYCLICTEST.read(records, purpose="verified" if mark else "measured", most=1)
    json.dumps(readings.extras)


def feed_elf(data: bytes) -> None:
    """Read a file as a kernel, and as its own module: its release, its build id, the hash of its code."""
    file = MemoryFile(data, "vmlinux")
    assert len(code_hash(file, [file], "6.1.0-kabc")) == 64, "a hash of another length"
    assert len(read_build_id(file)) <= 64, "a build id longer than any"
    read_release(file)


def mutate_elf(data: bytes, rng: random.Random) -> bytes:
    """Write wild numbers over fields of the headers."""
    changed = bytearray(data.ljust(64, b"\0"))
    for _ in range(rng.randrange(1, 5)):
        width, code = rng.choice(((2, "<H"), (4, "<I"), (8, "<Q")))
        at = rng.randrange(0, len(changed) - width, 2)
        struct.pack_into(code, changed, at, rng.choice(_WILD) & ((1 << 8 * width) - 1))
    return bytes(changed)


def feed_perf_data(data: bytes) -> None:
    """Read samples or, by the first byte, waits: what is read can be packed, and unpacks as the same."""
    kernel = ExpectedKernel(MemoryFile(_MAP, "System.map"))
    kind = data[0] % 3 if data else 0
    file = MemoryFile(data[1:], "perf.data")
    if kind:
        profile = read_waits(file, kernel, "lock" if kind == 1 else "off-cpu")
    else:
        profile = read_perf_data(file, kernel)
    assert unpack(pack(profile.tree)).samples == profile.samples, "a profile unpacks as another one"
    assert 0 <= profile.lost < 1 << 63, "a count of losses that no database takes"


def mutate_perf_data(data: bytes, rng: random.Random) -> bytes:
    """Write wild numbers over whole words, which all fields are made of, or the head of a record."""
    changed = bytearray(data.ljust(16, b"\0"))
    for _ in range(rng.randrange(1, 6)):
        at = 1 + 8 * rng.randrange((len(changed) - 1) // 8)
        if rng.random() < 0.5:
            struct.pack_into("<Q", changed, at, rng.choice(_WILD))
        else:
            kind, mode = rng.choice((1, 3, 7, 9, 10, 13, 17)), rng.choice((0, 1, 2))
            struct.pack_into("<IHH", changed, at, kind, mode, rng.choice((8, 16, 24, 40, 64)))
    return bytes(changed)


def feed_tracing(data: bytes) -> None:
    """Read the section of a perf.data that describes tracepoints, with the kernel's format files in it."""
    for name, point in read_tracepoints(data).items():
        assert name == point.name, "a tracepoint under another's name"
        inside = all(offset >= 0 and size >= 0 for offset, size in point.fields.values())
        assert inside, "a field before its record"


def feed_symbols(data: bytes) -> None:
    """Read what stands before the first line "%" as a System.map, the rest as kallsyms: every address has a name or none."""
    system_map, _, kallsyms = data.partition(b"\n%\n")
    symbols = KernelSymbols(MemoryFile(system_map, "System.map"), kallsyms)
    names, numbers = symbols.names(_ADDRESSES)
    assert len(numbers) == len(_ADDRESSES), "an address without a name"
    assert all(len(name) <= 512 for name in names), "a name longer than any"
    symbols.starts(_ADDRESSES)
    symbols.address("_text")
    for address in _ADDRESSES.tolist():
        symbols.modules.name(address, "[ext4]")


def feed_counters(data: bytes) -> None:
    """Read what stands before the first line "%" as the CSV of perf stat, the rest as the harness's counts."""
    stat, _, counts = data.partition(b"\n%\n")
    counted = read_counters(stat, counts)
    for numbers in counted.counters.values():
        for name, number in numbers.items():
            assert math.isfinite(number), "an odd count"
            assert len(name) <= 200, "a long name"
    assert len(counted.missing) <= 20_000, "more reasons than counters"


def feed_console(data: bytes) -> None:
    """Scan a console: nothing is refused, the list is bounded and in order, and its text can be shown anywhere."""
    findings = scan_console(data)
    assert len(findings) <= MAX_FINDINGS, "more findings than allowed"
    numbers = [finding.line_no for finding in findings]
    assert numbers == sorted(numbers), "findings out of order"
    assert not numbers or 1 <= numbers[0] <= numbers[-1] <= data.count(b"\n") + 1, "a line that is not there"
    for finding in findings:
        shown = finding.title + finding.frame + finding.excerpt.replace("\n", "").replace("\t", "")
        assert not any(ord(character) < 32 or 127 <= ord(character) < 160 for character in shown), "control"
        assert len(finding.excerpt) <= EXCERPT_BYTES, "a long excerpt"


def mutate_console(data: bytes, rng: random.Random) -> bytes:
    """Put a word of a report somewhere, or repeat or drop a piece."""
    at = rng.randint(0, len(data))
    end = min(len(data), at + rng.randint(0, 80))
    choice = rng.random()
    if choice < 0.6:
        return data[:at] + rng.choice(_WORDS) + data[at:]
    return data[:end] + data[at:] if choice < 0.8 else data[:at] + data[end:]


READERS = {
    "records": Reader(
        feed_records, (RecordCorrupt, RecordUnexpected, OutputUnreadable, WorkloadFailed), mutate_records
    ),
    "cyclictest": Reader(feed_cyclictest, (OutputUnreadable,)),
    "elf": Reader(feed_elf, (ArtifactCorrupt,), mutate_elf),
    "perfdata": Reader(feed_perf_data, (ProfileUnreadable,), mutate_perf_data),
    "tracing": Reader(feed_tracing, (ProfileUnreadable,)),
    "symbols": Reader(feed_symbols, (ProfileUnreadable,)),
    "counters": Reader(feed_counters, ()),
    "console": Reader(feed_console, (), mutate_console),
}
