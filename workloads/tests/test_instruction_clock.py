# SPDX-License-Identifier: GPL-2.0-or-later
"""Workloads under the instruction clock: which run there, with what parameters, and what their times become."""

from __future__ import annotations

from pathlib import Path

import pytest

from workloads.catalog import load_catalog
from workloads.definition import read_definition
from workloads.errors import BadParam, BadWorkloadFile, CaseRejected
from workloads.guest.ramdisk import check_memory, ramdisk_option
from workloads.instruction_clock import instructions
from workloads.tests.test_readings import iteration, printed, walked

CATALOG = load_catalog()
COUNTED = ["stat-walk", "showgids", "bh-lookup"]


def test_sixteen_nanoseconds_are_an_instruction() -> None:
    assert instructions(16, "ns") == 1
    assert instructions(0.000_003_200, "s") == 200
    assert instructions(1.5, "µs") == 93.75


def test_what_dividing_seconds_leaves_is_not_taken_for_a_difference() -> None:
    assert instructions(0.1 + 0.2, "s") == instructions(0.3, "s") == 18_750_000


@pytest.mark.parametrize("name", COUNTED)
def test_every_preset_runs_with_one_thread(name: str) -> None:
    workload = CATALOG[name]
    assert "instructions" in workload.clocks
    for preset in workload.presets:
        params = workload.resolve(preset, {}, clock="instructions")
        assert params.get("threads", 1) == 1
        *_setup, measured = workload.plan(params, iterations=1, warmup=0, clock="instructions").steps
        assert "clock=instructions" in measured.argv


@pytest.mark.parametrize("name", COUNTED)
def test_an_exact_run_does_what_a_measured_one_does_and_then_asks_for_the_modules(name: str) -> None:
    workload = CATALOG[name]
    params = workload.resolve("smoke", {}, clock="instructions")
    measured = workload.plan(params, iterations=1, warmup=0, clock="instructions").steps
    exact = workload.plan(params, iterations=1, warmup=0, purpose="profiled", clock="instructions").steps
    assert exact[:-1] == measured
    assert exact[-1].name == f"{measured[-1].name}:symbols"


def test_a_parameter_that_contradicts_the_clock_is_refused_and_an_equal_one_is_not() -> None:
    workload = CATALOG["showgids"]
    assert workload.resolve("smoke", {"threads": "1"}, clock="instructions")["threads"] == 1
    with pytest.raises(
        BadParam,
        match=r"^showgids: threads = 2 cannot be used with the instruction clock, which needs threads = 1$",
    ):
        workload.resolve("smoke", {"threads": 2}, clock="instructions")
    assert workload.resolve("smoke", {"threads": 2})["threads"] == 2


def test_a_workload_without_a_path_to_measure_says_so_in_one_line() -> None:
    workload = CATALOG["cyclictest-bh"]
    assert "instructions" not in workload.clocks
    with pytest.raises(
        CaseRejected, match=r"^cyclictest-bh does not run under the instruction clock: .*wake-up"
    ):
        workload.resolve("smoke", {}, clock="instructions")
    with pytest.raises(CaseRejected):
        workload.metrics_of({}, clock="instructions")


def test_metrics_that_count_are_labelled_and_others_are_gone() -> None:
    metrics = CATALOG["stat-walk"].metrics_of({}, clock="instructions")
    assert set(metrics) == {"instructions", "instructions_per_stat"}
    assert {(metric.unit, metric.better) for metric in metrics.values()} == {("instructions", "lower")}
    assert all(0 < metric.margin <= 0.01 for metric in metrics.values())
    assert metrics["instructions"].primary


def test_a_metric_of_each_block_is_counted_for_each_block() -> None:
    metrics = CATALOG["bh-lookup"].metrics_of({"blocks": ["8Gi"]}, clock="instructions")
    assert set(metrics) == {"instructions_per_lookup_8g", "instructions_per_timed_lookup_8g"}
    values = {
        "ns_per_lookup_8g": 160.5,
        "ns_per_timed_lookup_8g": 320,
        "elapsed": 1,
        "user": 0,
        "system": 1,
        "cpu": 9,
    }
    records = printed("lookup", iteration(0, dict(values)))
    (only,) = CATALOG["bh-lookup"].read(records, clock="instructions").iterations
    assert only.values == {"instructions_per_lookup_8g": 10.03125, "instructions_per_timed_lookup_8g": 20}


def test_times_become_instructions_and_the_mails_line_is_not_told() -> None:
    records = printed("walk", iteration(0, walked(elapsed=0.000_000_160)))
    readings = CATALOG["stat-walk"].read(records, clock="instructions")
    assert readings.iterations[0].values == {"instructions": 10, "instructions_per_stat": 0.0625}
    assert readings.line == ""


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("[instructions]\nparam = {}", "instructions has an unknown entry: param"),
        ("[instructions]\nparams = { thread = 1 }", "thread"),
        ("[instructions]\nparams = { x = 7 }", "x = 7 is not valid"),
        ('[metrics.rate]\nunit = "1/s"\nbetter = "higher"\nmargin = 0.1\ninstructions = "i"', "unit of rate"),
    ],
)
def test_a_file_that_says_it_wrong_is_refused_by_the_entry(tmp_path: Path, lines: str, told: str) -> None:
    head = 'summary = "s"\npresets = {}\nsteps = []\n[params.x]\ntype = "int"\ndefault = 1\nmax = 5\nhelp = "h"\n'
    metrics = "" if "[metrics" in lines else "\n[metrics]"
    (tmp_path / "workload.toml").write_text(head + lines + metrics)
    with pytest.raises(BadWorkloadFile, match=told):
        read_definition(tmp_path)


def test_a_workload_that_does_not_say_how_stays_on_the_wall_clock(tmp_path: Path) -> None:
    (tmp_path / "workload.toml").write_text(
        'summary = "s"\nparams = {}\npresets = {}\nmetrics = {}\nsteps = []'
    )
    assert "does not say how" in read_definition(tmp_path).counted.unfit


def test_a_disk_that_the_guest_cannot_hold_is_refused_with_what_it_takes(tmp_path: Path) -> None:
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(298 << 20)
    assert ramdisk_option(image) == "brd.rd_size=305152"
    check_memory(image, 1024)
    with pytest.raises(CaseRejected, match=r"298 MiB does not fit into 1021 MiB .* the target 1022 MiB"):
        check_memory(image, 1021)
