# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest's record stream: framed, greeted, held against a plan, and read as a workload means it."""

import json
import random
import tempfile
from pathlib import Path

from workers.collect.transcript import Transcript
from workloads.catalog import load_catalog
from workloads.errors import OutputUnreadable, RecordCorrupt, RecordUnexpected, WorkloadFailed
from workloads.guest.greeting import read_hello
from workloads.guest.records import KINDS, Record, RecordReader, encode_record
from workloads.instruction_clock import Clock
from workloads.step import Purpose

REFUSALS = (RecordCorrupt, RecordUnexpected, OutputUnreadable, WorkloadFailed)
_CATALOG = load_catalog()
_CLOCKS: tuple[tuple[Purpose, Clock], ...] = (
    ("measured", "wall"),
    ("verified", "wall"),
    ("profiled", "wall"),
    ("measured", "instructions"),
)
_SHORT = 16 << 10


def feed(data: bytes) -> None:
    """Read the stream as a run does; its first two bytes choose the workload and what the run is for."""
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


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Change, drop, double or swap whole records; checksums and numbers stay right."""
    reader = RecordReader()
    try:
        records = reader.feed(data[2:])
    except RecordCorrupt:
        records = []
    for _ in range(rng.randrange(1, 4)):
        _edit(records, rng)
    numbered = (Record(seq, one.kind, one.name, one.payload) for seq, one in enumerate(records, 1))
    return bytes([rng.randrange(256), rng.randrange(256)]) + b"".join(map(encode_record, numbered))


def _edit(records: list[Record], rng: random.Random) -> None:
    if not records:
        records.append(Record(1, "hello", "-", b'{"release":"6.1.0"}'))
        return
    at = rng.randrange(len(records))
    one = records[at]
    match rng.randrange(5):
        case 0:
            del records[at]
        case 1:
            records.insert(rng.randrange(len(records) + 1), one)
        case 2:
            records[at] = Record(one.seq, rng.choice(sorted(KINDS)), one.name, one.payload)
        case 3:
            records[at] = Record(one.seq, one.kind, rng.choice(records).name, one.payload)
        case _:
            records[at] = Record(one.seq, one.kind, one.name, _bytes(one.payload[:_SHORT], rng))


def _bytes(payload: bytes, rng: random.Random) -> bytes:
    odd = (
        b"NaN",
        b"-1",
        b"1e400",
        b"{}",
        b"[]",
        b'""',
        b"null",
        b"true",
        b"\\u0000",
        b"\xff",
        b"9" * 30,
        b'"',
    )
    at = rng.randrange(len(payload) + 1)
    return payload[:at] + rng.choice(odd) + payload[at + rng.randrange(8) :]
