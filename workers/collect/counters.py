# SPDX-License-Identifier: GPL-2.0-or-later
"""Counters of a profiled run while its workload was timed: `perf stat`'s CSV, and how /proc/vmstat and slabinfo changed.

The CSV is described in tools/perf/Documentation/perf-stat.txt, slabinfo in slabinfo(5); counts.c of the harness writes the
file with both. Counts that did not change are left out.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

VMSTAT, SLABINFO = "/proc/vmstat", "/proc/slabinfo"
_FILES = {VMSTAT: "vmstat", SLABINFO: "slab"}
SOURCES = ("perf stat", *_FILES.values())
# "= before /proc/vmstat", with ": the reason" where it could not be read.
_HEAD = re.compile(r"^= (before|after) (/proc/\w+)(?:: (.*))?$", re.MULTILINE)
_MOST_NAMES = 4096
_NAME_CHARS = 100
# In vmstat, but derived from free memory.
_NO_COUNT = "_threshold"
_WHY = {
    "<not supported>": "this machine has no such counter; a guest without a PMU has none of the hardware's",
    "<not counted>": "it was never on a CPU's counter",
}


@dataclass(frozen=True, slots=True)
class CountedEvents:
    """counters: by source and name. missing: what could not be counted, and why."""

    counters: Mapping[str, Mapping[str, float]]
    missing: Mapping[str, str]


def read_counters(stat: bytes, counts: bytes) -> CountedEvents:
    """Return the counts in the two files of a counted pass; lines in another format are skipped."""
    counters, missing = _of_perf(stat.decode(errors="replace"))
    if not counters:
        missing[SOURCES[0]] = "it left no count"
    by_source = {SOURCES[0]: counters}
    changes, reasons = _changes(counts.decode(errors="replace"))
    for path, source in _FILES.items():
        if path in changes:
            by_source[source] = {
                name: n for name, n in changes[path].items() if n and not name.endswith(_NO_COUNT)
            }
        else:
            missing[source] = reasons.get(path, "the guest did not tell")
    return CountedEvents({source: counts for source, counts in by_source.items() if counts}, missing)


def _of_perf(text: str) -> tuple[dict[str, float], dict[str, str]]:
    """Read lines of value, unit, event, running time, and its share in percent; a value may say why there is none."""
    counts: dict[str, float] = {}
    missing: dict[str, str] = {}
    for line in text.splitlines():
        fields = line.split(",")
        if line.startswith("#") or len(fields) < 5 or len(counts) >= _MOST_NAMES:
            continue
        value, _, event, _, share = fields[:5]
        if value in _WHY:
            missing[event[:_NAME_CHARS]] = _WHY[value]
        elif (number := _number(value)) is not None:
            counts[event[:_NAME_CHARS]] = number
            if (ran := _number(share)) is not None and ran < 100:
                missing[f"{event[:_NAME_CHARS]}, {100 - ran:.0f} % of the time"] = (
                    "more counters were asked for than there are; the count is scaled up"
                )
    return counts, missing


def _changes(text: str) -> tuple[dict[str, Counter[str]], dict[str, str]]:
    """Return, by file, the growth of each count over all pairs of "before" and "after"; and why a file could not be read."""
    changes: dict[str, Counter[str]] = {}
    reasons: dict[str, str] = {}
    heads = list(_HEAD.finditer(text))
    for head, ends in zip(heads, [*(head.start() for head in heads[1:]), len(text)], strict=False):
        when, path, reason = head.groups()
        if reason is not None:
            reasons[path] = reason[:200]
        elif path in _FILES:
            change = changes.setdefault(path, Counter())
            for name, number in _pairs(text[head.end() : ends]):
                change[name] += number if when == "after" else -number
    return {path: change for path, change in changes.items() if path not in reasons}, reasons


def _pairs(text: str) -> Iterator[tuple[str, int]]:
    """Yield each line's first word and the number after it: a count, or a slab cache's objects in use."""
    for line in text.splitlines()[:_MOST_NAMES]:
        fields = line.split(maxsplit=2)
        if len(fields) > 1 and fields[1].isdecimal() and len(fields[1]) < 20:
            yield fields[0][:_NAME_CHARS], int(fields[1])


def _number(text: str) -> float | None:
    try:
        value = float(text.strip().removesuffix("%"))
    except ValueError:
        return None
    return value if math.isfinite(value) else None
