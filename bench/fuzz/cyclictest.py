# SPDX-License-Identifier: GPL-2.0-or-later
"""cyclictest's report and the kernel's histogram of calls, as a verified and a measured run read them."""

import json

from workloads.catalog import load_catalog
from workloads.errors import OutputUnreadable
from workloads.guest.records import Record

REFUSALS = (OutputUnreadable,)
_WORKLOAD = load_catalog()["cyclictest-bh"]
_LOADED = {"iteration": 0, "warmup": False, "values": {}, "flushes": 3, "function_call_interrupts": {}}


def feed(data: bytes) -> None:
    """Read what stands before the first line "%" as cyclictest's JSON, the rest as the histogram."""
    report, mark, calls = data.partition(b"\n%\n")
    records = [
        Record(1, "out", "cyclictest", json.dumps(_LOADED).encode()),
        Record(2, "file", "/tmp/cyclictest-0.json", report),
    ]
    if mark:
        records.append(Record(3, "file", "/tmp/calls.hist", calls))
    printed = [step.name for step in _WORKLOAD.definition.steps if step.kind == "measure"]
    records[0] = Record(1, "out", printed[0], records[0].payload)
    readings = _WORKLOAD.read(records, purpose="verified" if mark else "measured", most=1)
    json.dumps(readings.extras)
