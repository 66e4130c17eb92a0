# SPDX-License-Identifier: GPL-2.0-or-later
"""Real output of guests (golden/, refreshed by golden.py), and output that no guest should send."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from workloads.catalog import load_catalog
from workloads.errors import OutputUnreadable, WorkloadFailed
from workloads.guest.records import Record, RecordReader
from workloads.readings import Readings
from workloads.step import Purpose

CATALOG = load_catalog()
GOLDEN = Path(__file__).parent / "golden"


def golden(name: str) -> list[Record]:
    return RecordReader().feed((GOLDEN / f"{name}.records").read_bytes())


def read(name: str, workload: str = "", purpose: Purpose = "measured") -> Readings:
    return CATALOG[workload or name].read(golden(name), purpose=purpose)


def printed(step: str, *objects: object) -> list[Record]:
    lines = "".join(json.dumps(item) + "\n" for item in objects).encode()
    # In two pieces, cut inside a line, as a pipe may deliver them.
    return [Record(1, "out", step, lines[:40]), Record(2, "out", step, lines[40:])]


def iteration(index: int, values: dict[str, object], warmup: bool = False) -> dict[str, object]:
    return {"iteration": index, "warmup": warmup, "values": values}


def walked(elapsed: float = 46.118, user: float = 3.77, system: float = 890.90) -> dict[str, object]:
    values = {"elapsed": elapsed, "user": user, "system": system, "cpu": 100 * (user + system) / elapsed}
    return {**values, "ns_per_stat": 1.0, "files_per_second": 1.0}


def test_a_stat_walk_gives_warm_up_iterations_and_the_mails_line() -> None:
    readings = read("stat-walk")
    assert [(reading.index, reading.warmup) for reading in readings.iterations] == [
        (0, True),
        (1, False),
        (2, False),
    ]
    assert readings.iterations[1].values.keys() == CATALOG["stat-walk"].metrics.keys()
    values = readings.iterations[2].values
    assert values["ns_per_stat"] == pytest.approx(values["elapsed"] * 2 / 4000 * 1e9, rel=1e-6)
    assert readings.extras["cache"] == "cold"


def test_the_line_is_the_mails_to_the_letter() -> None:
    records = printed("walk", iteration(0, walked()))
    line = CATALOG["stat-walk"].read(records).line
    assert line == "3.77s user 890.90s system 1939% cpu 46.118 total"


def test_the_line_is_of_the_median_iteration_and_never_of_a_warm_up() -> None:
    times = [9.0, 1.0, 3.0, 2.0]
    objects = [iteration(index, walked(elapsed), index == 0) for index, elapsed in enumerate(times)]
    assert CATALOG["stat-walk"].read(printed("walk", *objects)).line.endswith(" 2.000 total")


def test_a_verified_walk_proves_a_cold_cache_by_exact_counts() -> None:
    readings = read("stat-walk-verified", "stat-walk", "verified")
    counts = readings.extras["find_inode_fast"]
    # 4,000 files, 20 directories and 2 roots of trees, each sought twice, none ever found.
    assert sorted(item["count"] for item in counts) == [22, 22, 4000, 4000]
    assert all(item["null"] for item in counts)
    assert all(item["stack"][0].startswith("iget_locked+") for item in counts)
    assert readings.extras["verified_holds"] is True
    assert readings.extras["verified"] == (
        "8,044 calls of find_inode_fast returned NULL, 0 did not: "
        "4,022 inodes read in for 4,000 files, cache cold ✓"
    )


def test_a_verified_walk_is_told_in_the_form_of_the_mail() -> None:
    text = read("stat-walk-verified", "stat-walk", "verified").extras["bpftrace"]
    *_, block = text.split("@[")
    lines = [line.strip() for line in block.strip().splitlines()]
    stems = [line.partition("+")[0] for line in lines]
    expected = ["iget_locked", "__ext4_iget", "ext4_lookup", "__lookup_slow", "walk_component"]
    assert stems[:5] == expected
    assert lines[-1] == ", 0]: 4000"


def test_a_warm_cache_is_proven_by_the_absence_of_calls() -> None:
    extras = read("stat-walk-verified-warm", "stat-walk", "verified").extras
    assert extras["find_inode_fast"] == []
    assert extras["verified"].endswith("cache warm ✓")


def test_a_walk_that_found_inodes_was_not_cold() -> None:
    records = [
        Record(r.seq, r.kind, r.name, r.payload.replace(b"value == 0", b"value != 0"))
        if r.kind == "file"
        else r
        for r in golden("stat-walk-verified")
    ]
    extras = CATALOG["stat-walk"].read(records, purpose="verified").extras
    assert extras["verified_holds"] is False
    assert extras["verified"].endswith("cache cold ✗")


@pytest.mark.parametrize(
    ("name", "workload"), [("stat-walk-verified", "stat-walk"), ("cyclictest-bh-verified", "cyclictest-bh")]
)
def test_a_verified_run_is_never_timed(name: str, workload: str) -> None:
    readings = read(name, workload, "verified")
    assert readings.iterations == ()
    assert readings.line == ""


def test_showgids_opens_the_mails_own_files() -> None:
    readings = read("showgids")
    assert readings.extras == {"files": 1024, "glob": "/sys/class/infiniband/*/ports/*/gids/*"}
    for reading in readings.iterations:
        opens = 2 * 3 * 1024
        assert reading.values["opens_per_second"] == pytest.approx(
            opens / reading.values["elapsed"], rel=1e-6
        )


def test_showgids_says_when_it_opened_other_files() -> None:
    assert "/cpu" in read("showgids-fallback", "showgids").extras["glob"]


def test_cyclictests_histogram_is_kept_whole() -> None:
    extras = read("cyclictest-bh").extras
    timed = extras["cyclictest"]
    assert len(timed) == 2
    cycles = sum(thread["cycles"] for report in timed for thread in report["thread"].values())
    histogram = extras["histogram"]
    assert sum(histogram["counts"].values()) + histogram["overflow"] == cycles
    assert histogram["unit"] == "µs"


def test_cyclictests_percentiles_rise_to_the_maximum() -> None:
    for reading in read("cyclictest-bh").iterations:
        tail = [reading.values[name] for name in ("p50", "p99", "p99_9", "p99_99", "max")]
        assert tail == sorted(tail)
        assert tail[0] > 0


def test_the_load_reaches_the_measured_cpu_by_ipi_and_only_the_load_does() -> None:
    loaded, alone = read("cyclictest-bh").extras, read("cyclictest-bh-off", "cyclictest-bh").extras
    ipis = [[by_cpu[1] for by_cpu in extras["function_call_interrupts"]] for extras in (loaded, alone)]
    assert min(ipis[0]) > 10 * max(ipis[1])
    by_cpu = read("cyclictest-bh-verified", "cyclictest-bh", "verified").extras["invalidate_bh_lru"]
    assert by_cpu["1"] > 100


@pytest.mark.parametrize(
    ("row", "holds"),
    [
        ("", None),
        ("{ common_cpu:          0 } hitcount:       1000\n", None),
        ("{ common_cpu:          1 } hitcount:       1000\n", True),
        # Of a machine whose siblings are off: CPUs 0 and 2.
        ("{ common_cpu:          2 } hitcount:       1000\n", True),
        (None, True),
    ],
    ids=["no calls", "on the housekeeping CPU alone", "on the measured CPU", "on CPU 2", "no such function"],
)
def test_ipis_that_reach_no_measured_cpu_prove_nothing(row: str | None, holds: bool | None) -> None:
    """Without the function, as with the patch of the mail, there is nothing to invalidate."""
    info = (
        "# event histogram\n#\n# trigger info: hist:keys=common_cpu:vals=hitcount:size=2048 [active]\n#\n\n"
    )
    counts = b"" if row is None else f"{info}{row}\nTotals:\n    Hits: {1000 if row else 0}\n".encode()
    records = [record for record in golden("cyclictest-bh-verified") if record.name != "/tmp/calls.hist"]
    records.insert(-1, Record(1, "file", "/tmp/calls.hist", counts))
    extras = CATALOG["cyclictest-bh"].read(records, purpose="verified").extras
    assert min(extras["flushes"]) > 0
    assert extras["verified_holds"] is holds


def test_bh_lookup_gives_ns_for_each_block() -> None:
    readings = read("bh-lookup")
    assert readings.iterations[1].values.keys() == CATALOG["bh-lookup"].metrics.keys()
    assert readings.line.endswith(" ns per __find_get_block (suc=200000)")


def test_a_failed_step_is_told_by_its_own_words() -> None:
    with pytest.raises(
        WorkloadFailed, match='step "walk" ended with status 1: stat-walk: cache=thrash: 4020'
    ) as caught:
        read("stat-walk-refused", "stat-walk")
    assert caught.value.blame == "kernel"
    assert "at least" in caught.value.detail


def test_the_programs_last_word_counts_not_what_perf_says_after_it() -> None:
    said = b"Events disabled\nshowgids: no file matches /x\n[ perf record: Woken up 1 times to write data ]\n"
    ending = json.dumps({"status": 1, "signal": 0, "timed_out": False}).encode()
    records = [Record(1, "err", "open", said), Record(2, "exit", "open", ending)]
    with pytest.raises(WorkloadFailed, match=r"status 1: showgids: no file matches /x$"):
        CATALOG["showgids"].read(records, purpose="profiled")


def test_a_verified_run_must_bring_home_what_it_was_for() -> None:
    walk = printed("walk", {**iteration(0, walked()), "cache": "cold", "stats": 4000})
    with pytest.raises(
        OutputUnreadable, match="stat-walk: the guest did not return the counts of the verified run"
    ):
        CATALOG["stat-walk"].read(walk, purpose="verified")
    assert CATALOG["stat-walk"].read(walk, purpose="profiled").iterations == ()


@pytest.mark.parametrize(
    ("ending", "says"),
    [
        (
            {"status": 0, "signal": 9, "timed_out": True, "wall_s": 120.4},
            r"did not end within its deadline \(120 s\)",
        ),
        ({"status": 0, "signal": 11, "timed_out": False}, "was ended by signal 11"),
    ],
)
def test_a_step_that_was_killed_is_told_by_what_killed_it(ending: dict[str, object], says: str) -> None:
    with pytest.raises(WorkloadFailed, match=says):
        CATALOG["showgids"].read([Record(1, "exit", "open", json.dumps(ending).encode())])


def opened(**change: object) -> dict[str, object]:
    values = {"ns_per_open": 1, "opens_per_second": 1, "elapsed": 1, "user": 1, "system": 1, "cpu": 1}
    return {name: value for name, value in {**values, **change}.items() if value is not None}


@pytest.mark.parametrize(
    ("records", "says"),
    [
        ([], "showgids printed no iteration"),
        (printed("open", iteration(0, opened(), warmup=True)), "showgids printed no iteration"),
        (printed("open", iteration(0, opened(user=None))), "iteration 0 lacks user"),
        (printed("open", iteration(0, opened(latency=1))), "latency is not a metric"),
        (printed("open", iteration(0, opened(user="much"))), "'user' is not a metric with a number"),
        (printed("open", iteration(0, opened(user=float("nan")))), "NaN is not a number of JSON"),
        (printed("open", [1, 2, 3]), "not a JSON object"),
        ([Record(1, "out", "open", b'{"iteration":0,"war')], "is not JSON"),
    ],
)
def test_what_a_program_must_not_print_is_refused(records: Sequence[Record], says: str) -> None:
    with pytest.raises(OutputUnreadable, match=says):
        CATALOG["showgids"].read(records)


def test_a_verified_walk_of_warm_ups_alone_is_refused() -> None:
    walk = printed("walk", {**iteration(0, walked(), warmup=True), "cache": "cold", "stats": 4000})
    histogram = (
        b"# event histogram\n# trigger info: hist:keys=x [active]\n\n\nTotals:\n    Hits: 0\n    Dropped: 0\n"
    )
    records = [*walk, Record(3, "file", "/tmp/returns.hist", histogram)]
    with pytest.raises(OutputUnreadable, match="printed no iteration that counts"):
        CATALOG["stat-walk"].read(records, purpose="verified")


def test_what_a_setup_step_prints_is_no_reading() -> None:
    records = [Record(1, "out", "soft-roce", b"chatter\n"), *printed("open", iteration(0, opened()))]
    assert len(CATALOG["showgids"].read(records).iterations) == 1


def test_cyclictest_without_its_report_is_refused() -> None:
    records = [record for record in golden("cyclictest-bh") if record.kind != "file"]
    with pytest.raises(OutputUnreadable, match=r"cyclictest left no /tmp/cyclictest-0\.json"):
        CATALOG["cyclictest-bh"].read(records)
