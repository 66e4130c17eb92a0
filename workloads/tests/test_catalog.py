# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from workloads.catalog import PROGRAMS, load_catalog
from workloads.definition import read_definition
from workloads.errors import (
    BadParam,
    BadWorkloadFile,
    CaseRejected,
    UnknownParam,
)
from workloads.guest.pack import pack_plan
from workloads.guest.plan import DiskShape, Plan
from workloads.step import PURPOSES, Purpose

CATALOG = load_catalog()
GIBI = 1 << 30


def plan(
    name: str, purpose: Purpose = "measured", preset: str = "smoke", params: dict[str, object] | None = None
) -> Plan:
    workload = CATALOG[name]
    return workload.plan(workload.resolve(preset, params or {}), iterations=3, warmup=1, purpose=purpose)


def test_the_four_workloads_of_the_mails_are_there() -> None:
    assert set(CATALOG) >= {"stat-walk", "showgids", "cyclictest-bh", "bh-lookup"}


@pytest.mark.parametrize("name", CATALOG)
def test_every_preset_can_be_planned_and_packed_for_every_purpose(name: str) -> None:
    workload = CATALOG[name]
    assert {"smoke", "small", "large", "seed"} <= workload.presets.keys()
    for preset in workload.presets:
        for purpose in PURPOSES:
            if purpose == "verified" and not workload.verifies:
                continue
            steps = plan(name, purpose, preset).steps
            assert pack_plan(Plan(steps), {})
            assert any(step.kind == "measure" for step in steps)
            assert len({step.name for step in steps}) == len(steps)
            assert not [part for step in steps if step.argv[0] != "sh" for part in step.argv if "{" in part]


@pytest.mark.parametrize("name", CATALOG)
def test_every_workload_says_what_a_verdict_on_it_is_about(name: str) -> None:
    metrics = CATALOG[name].metrics
    assert any(metric.primary for metric in metrics.values())
    assert all(metric.unit and 0 < metric.margin < 1 for metric in metrics.values())


def test_given_parameters_win_over_the_preset_and_the_preset_over_defaults() -> None:
    resolved = CATALOG["stat-walk"].resolve("smoke", {"dirs": 7})
    assert (resolved["threads"], resolved["dirs"], resolved["files"]) == (2, 7, 200)
    assert resolved["cache"] == "cold"


def test_the_seed_preset_has_the_mails_own_sizes() -> None:
    assert plan("stat-walk", preset="seed").disk == DiskShape("stat-tree", 20, 1000, 1000)
    assert CATALOG["bh-lookup"].resolve("seed", {})["loops"] == 200_000


def test_an_unknown_name_is_answered_with_the_nearest_and_all_valid_ones() -> None:
    with pytest.raises(CaseRejected, match=r'preset of showgids .*"tiny".* valid: smoke, small, large, seed'):
        CATALOG["showgids"].resolve("tiny", {})
    with pytest.raises(UnknownParam, match=r'"thread", did you mean "threads"\? valid: threads, dirs, files'):
        CATALOG["stat-walk"].resolve("smoke", {"thread": 4})


def test_a_value_that_does_not_fit_is_answered_with_what_does() -> None:
    with pytest.raises(BadParam, match="stat-walk: cache = 'hot' is not valid: one of cold, warm, thrash"):
        CATALOG["stat-walk"].resolve("smoke", {"cache": "hot"})
    with pytest.raises(BadParam, match="threads = 0 is not valid: a whole number from 1 to 512"):
        CATALOG["stat-walk"].resolve("smoke", {"threads": 0})


def test_resolved_parameters_survive_a_trip_through_json() -> None:
    workload = CATALOG["bh-lookup"]
    resolved = workload.resolve("smoke", {})
    assert resolved["blocks"] == (1, 4 * GIBI)
    stored: dict[str, object] = {**resolved, "blocks": [1, 4 * GIBI]}
    assert workload.plan(stored, iterations=1, warmup=0) == workload.plan(resolved, iterations=1, warmup=0)


def test_a_metric_exists_once_per_block() -> None:
    workload = CATALOG["bh-lookup"]
    assert set(workload.metrics) >= {"ns_per_lookup_1", "ns_per_lookup_4g", "ns_per_timed_lookup_4g"}
    assert "ns_per_lookup_8g" in workload.metrics_of({"blocks": ["8Gi"]})
    assert "ns_per_lookup_1" not in workload.metrics_of({"blocks": ["8Gi"]})


def test_a_profiled_run_counts_first_and_then_records_once_with_each_recorder() -> None:
    steps = {step.name: step for step in plan("showgids", "profiled").steps}
    assert list(steps) == [
        "soft-roce",
        "open:fifos",
        "open",
        "open:cpu",
        "open:lock",
        "open:c2c",
        "open:symbols",
    ]
    assert steps["open:fifos"].argv == ("mkfifo", "/tmp/perf.ctl", "/tmp/perf.ack")
    assert steps["open"].argv[:3] == ("perf", "stat", "-a")
    assert "counts=/tmp/kperflab.counts" in steps["open"].argv
    assert steps["open:cpu"].send == ("/tmp/perf.data",)
    assert "lock:contention_begin" in steps["open:lock"].argv
    assert "cpu-clock" not in steps["open:lock"].argv


@pytest.mark.parametrize("recorder", ["cpu", "lock"])
def test_a_recorder_is_on_in_one_timed_iteration_of_two(recorder: str) -> None:
    steps = {step.name: step for step in plan("showgids", "profiled").steps}
    perf, program = " ".join(steps[f"open:{recorder}"].argv).rsplit(" -- ", 1)
    assert "-D -1 --control fifo:/tmp/perf.ctl,/tmp/perf.ack" in perf
    assert "control=/tmp/perf.ctl,/tmp/perf.ack reference=1" in program


def test_waits_off_the_cpus_are_recorded_on_request() -> None:
    workload = CATALOG["showgids"]
    steps = workload.plan(
        workload.resolve("smoke", {}), iterations=1, warmup=0, purpose="profiled", off_cpu=True
    ).steps
    assert "sched:sched_switch" in next(step for step in steps if step.name == "open:off-cpu").argv


def test_a_measured_run_holds_nothing_of_perf_or_probes() -> None:
    for name in CATALOG:
        text = " ".join(part for step in plan(name).steps for part in step.argv)
        assert "perf record" not in text
        assert "perf stat" not in text
        assert "kprobe" not in text


def test_a_foreign_program_runs_once_per_iteration_and_is_profiled_once() -> None:
    names = [step.name for step in plan("cyclictest-bh").steps if step.kind == "measure"]
    assert names == ["wake-0", "wake-1", "wake-2", "wake-3"]
    profiled = [step for step in plan("cyclictest-bh", "profiled").steps if step.kind == "measure"]
    assert [step.name for step in profiled] == ["wake-0", "wake-1", "wake-1:cpu", "wake-1:lock", "wake-1:c2c"]
    assert not [step.name for step in profiled if {"reference=1", "--control"} & set(step.argv)]


def test_a_verified_run_counts_before_and_sends_after_the_walk() -> None:
    steps = {step.name: step for step in plan("stat-walk", "verified").steps}
    assert list(steps) == ["mount", "arm", "walk", "counts"]
    assert "counted=kperflab-timed" in steps["walk"].argv
    assert "iterations=1" in steps["walk"].argv
    assert "/tmp/returns.hist" in steps["counts"].send


def test_what_claims_nothing_cannot_be_verified() -> None:
    with pytest.raises(CaseRejected, match="showgids claims nothing"):
        plan("showgids", "verified")


def test_deadlines_grow_with_the_work() -> None:
    def work(files: int) -> float:
        return max(step.deadline_s for step in plan("stat-walk", params={"files": files}).steps) - 120

    assert work(2000) == pytest.approx(10 * work(200))


def test_the_kernel_module_comes_with_its_sources() -> None:
    (module,) = CATALOG["bh-lookup"].modules
    assert module.name == "bh-lookup-module"
    assert b"bh-lookup-module.o" in module.files["Kbuild"]
    assert b'MODULE_LICENSE("GPL")' in module.files["bh-lookup-module.c"]


def test_a_walk_may_have_an_inode_hash_of_a_size_of_its_own() -> None:
    walk = CATALOG["stat-walk"]
    own = walk.plan(walk.resolve("smoke", {"buckets": 256}), iterations=1, warmup=0)
    assert own.cmdline == "ihash_entries=256"
    assert walk.plan(walk.resolve("smoke", {}), iterations=1, warmup=0).cmdline == ""


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("summary", "sumary"), "unknown entry sumary"),
        (('unit = "s"', ""), "entry 'unit' is missing"),
        (('better = "lower"', 'better = "less"'), "better of elapsed is 'less'"),
        (("default = 1", 'default = "x"'), "n = 'x' is not valid"),
        (('kind = "measure"', 'kind = "mesure"'), "kind of run is 'mesure'"),
        (("[params.n]", "[params.n"), "workload.toml"),
        (('loglevel = "n"', 'loglevel = "m"'), "entry 'm' is missing"),
        (('type = "int"\ndefault = 1', 'type = "str"\ndefault = ""'), "kernel: n must be a number"),
    ],
)
def test_a_mistake_in_a_folder_is_named(tmp_path: Path, change: tuple[str, str], says: str) -> None:
    good = """summary = "s"
[params.n]
type = "int"
default = 1
help = "n"
[kernel]
loglevel = "n"
[presets]
smoke = {}
[metrics.elapsed]
unit = "s"
better = "lower"
margin = 0.1
[[steps]]
name = "run"
kind = "measure"
argv = ["true"]
deadline_s = 1
"""
    (tmp_path / "workload.toml").write_text(good)
    assert read_definition(tmp_path).summary == "s"
    (tmp_path / "workload.toml").write_text(good.replace(*change, 1))
    with pytest.raises(BadWorkloadFile, match=r"workload\.toml: ") as caught:
        read_definition(tmp_path)
    assert says in str(caught.value)


def test_a_folder_is_read_again_once_one_of_its_files_changed(tmp_path: Path) -> None:
    shutil.copytree(PROGRAMS / "showgids", tmp_path / "showgids")
    before = load_catalog(tmp_path)["showgids"]
    assert load_catalog(tmp_path)["showgids"] is before
    for name in ("soft-roce.sh", "workload.toml"):
        with (tmp_path / "showgids" / name).open("a") as file:
            file.write("# changed\n")
        after = load_catalog(tmp_path)["showgids"]
        assert after is not before
        before = after
    (tmp_path / "showgids" / "workload.toml").unlink()
    assert load_catalog(tmp_path) == {}
