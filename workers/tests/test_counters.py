# SPDX-License-Identifier: GPL-2.0-or-later
"""Counters of `perf stat` and /proc."""

from __future__ import annotations

import lzma
from pathlib import Path

from workers.collect.counters import read_counters

GOLDEN = Path(__file__).parent / "golden" / "profiled"
STAT = b"""# started on Fri Nov 20 19:47:55 2026

486,,context-switches,712454798,100.00,,
0,,major-faults,712157778,100.00,,
1200,,cycles,400,66.60,,
<not supported>,,instructions,0,100.00,,
<not counted>,,branches,0,0.00,,
"""
ROUND = """= before /proc/vmstat
nr_free_pages 900
pgfault 100
= before /proc/slabinfo
slabinfo - version: 2.1
# name            <active_objs> <num_objs>
dentry 40 42 192
= after /proc/vmstat
nr_free_pages 880
pgfault 107
= after /proc/slabinfo
dentry 90 92 192
"""


def test_counts_are_told_by_their_source() -> None:
    counters = read_counters(STAT, (ROUND + ROUND).encode())
    assert counters.counters == {
        "perf stat": {"context-switches": 486.0, "major-faults": 0.0, "cycles": 1200.0},
        "vmstat": {"nr_free_pages": -40, "pgfault": 14},
        "slab": {"dentry": 100},
    }


def test_a_counter_that_is_missing_is_told_with_the_reason() -> None:
    missing = read_counters(STAT, ROUND.encode()).missing
    assert "without a PMU" in missing["instructions"]
    assert "never on" in missing["branches"]
    assert "scaled" in missing["cycles, 33 % of the time"]


def test_what_the_guest_could_not_read_is_told_in_its_words() -> None:
    counts = ROUND.replace("/proc/slabinfo", "/proc/slabinfo: No such file or directory")
    counters = read_counters(STAT, counts.encode())
    assert counters.missing["slab"] == "No such file or directory"
    assert set(counters.counters) == {"perf stat", "vmstat"}


def test_nothing_that_came_home_is_told_as_that() -> None:
    counters = read_counters(b"", b"")
    assert counters.counters == {}
    assert set(counters.missing) == {"perf stat", "vmstat", "slab"}


def test_nonsense_is_passed_over() -> None:
    text = b"= before /proc/vmstat\npgfault many\n\xff\xff 3\nx 99999999999999999999999\n"
    assert read_counters(b"inf,,cycles,1,100\nnan,,x,1,1\n,,\n1,2\n", text).counters.get("perf stat") is None


def test_a_real_guests_counts_are_read() -> None:
    counters = read_counters(
        (GOLDEN / "perf.stat").read_bytes(), lzma.decompress((GOLDEN / "counts.xz").read_bytes())
    )
    assert counters.counters["perf stat"]["context-switches"] > 0
    assert counters.counters["vmstat"]["pgalloc_dma32"] > 0
    assert not [name for name in counters.counters["vmstat"] if name.endswith("_threshold")]
    assert set(counters.missing) == {
        *("cycles", "instructions", "branches", "branch-misses", "cache-references", "cache-misses"),
    }
