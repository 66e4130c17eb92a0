# SPDX-License-Identifier: GPL-2.0-or-later
"""cyclictest's JSON: percentiles of all threads together, and the histogram, kept whole.

All latencies are in µs: cyclictest counts its histogram in the unit it prints, and its buckets
of 1 ns (-N) would end at 1 ms.
"""

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from workloads.errors import OutputUnreadable
from workloads.guest.strictjson import read_object
from workloads.hist import parse_hist, read_number
from workloads.percentile import percentile

_CALLS = "/tmp/calls.hist"  # noqa: S108 the guest's
_MOST = 1 << 53
_SHARES = {"p50": 0.5, "p99": 0.99, "p99_9": 0.999, "p99_99": 0.9999}


def parse(
    objects: list[dict[str, Any]], files: Mapping[str, bytes]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """bh-load's objects with the percentiles as values; the histogram of all timed iterations."""
    read, reports, pooled, lost = [], [], Counter[int](), 0
    for item in objects:
        report = _report(files, item["iteration"])
        counts, overflow, top = _histogram(report)
        values = {name: percentile(counts, share, overflow, top) for name, share in _SHARES.items()}
        read.append({**item, "values": {**values, "max": float(top)}})
        if not item["warmup"]:
            pooled, lost = pooled + counts, lost + overflow
            reports.append(report)
    histogram = {"unit": "µs", "counts": {str(at): pooled[at] for at in sorted(pooled)}, "overflow": lost}
    return read, {"histogram": histogram, "cyclictest": reports, **_verified(objects, files)}


def _report(files: Mapping[str, bytes], iteration: int) -> dict[str, Any]:
    name = f"/tmp/cyclictest-{iteration}.json"  # noqa: S108
    if name not in files:
        raise OutputUnreadable(f"cyclictest left no {name}")
    return read_object(files[name], name)


def _histogram(report: dict[str, Any]) -> tuple[Counter[int], int, int]:
    """Counts by latency of all threads, how many were beyond the histogram, and the maximum."""
    counts, overflow, top = Counter[int](), 0, 0
    for thread in report["thread"].values():
        own = {_count(int(at)): _count(count) for at, count in thread["histogram"].items()}
        counts.update(own)
        overflow += _count(thread["cycles"]) - sum(own.values())
        top = max(top, _count(thread["max"]))
    if not counts and overflow <= 0:
        raise OutputUnreadable("cyclictest counted no wake-up", json.dumps(report))
    return counts, max(overflow, 0), top


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < _MOST:
        raise ValueError("a count of cyclictest's is not a whole number from 0 up")
    return value


def _verified(objects: list[dict[str, Any]], files: Mapping[str, bytes]) -> dict[str, Any]:
    if _CALLS not in files:
        return {}
    histograms = parse_hist(files[_CALLS].decode())
    by_cpu = {
        str(read_number(keys, "common_cpu")): count
        for histogram in histograms
        for keys, count in histogram.rows
    }
    flushes = sum(item.get("flushes", 0) for item in objects)
    # As bh-load.c: all but the first, or the only one. Where siblings are off, numbers are left out.
    single = all(len(item["function_call_interrupts"]) <= 1 for item in objects)
    reached = bool(by_cpu if single else by_cpu.keys() - {"0"})
    said = ", ".join(f"CPU {cpu}: {by_cpu[cpu]:,}" for cpu in sorted(by_cpu, key=int))
    statement = f"{flushes:,} flushes; calls of invalidate_bh_lru: {said or 'none'}"
    # A kernel without the function has nothing to invalidate, and without the load nothing is flushed. None, not False: a patch may
    # spare the measured CPUs, and its boots count.
    holds = True if reached or not histograms or not flushes else None
    return {"invalidate_bh_lru": by_cpu, "verified": statement, "verified_holds": holds}
