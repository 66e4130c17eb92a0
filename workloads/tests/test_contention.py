# SPDX-License-Identifier: GPL-2.0-or-later
"""Workloads under the contention clock: how many threads they have, what is said of them, and what they print."""

from __future__ import annotations

import json

import pytest

from workloads.catalog import load_catalog
from workloads.contention import MOST_CPUS
from workloads.errors import BadParam, OutputUnreadable, UnknownParam
from workloads.guest.records import Record

CATALOG = load_catalog()


@pytest.mark.parametrize("name", sorted(CATALOG))
def test_every_preset_has_a_thread_for_each_of_the_most_cpus(name: str) -> None:
    workload = CATALOG[name]
    assert "contention" in workload.clocks
    for preset in workload.presets:
        params = workload.resolve(preset, {"cpus": "4,20,1"}, clock="contention")
        plan = workload.plan(params, iterations=2, warmup=1, clock="contention")
        (measured,) = (step for step in plan.steps if step.kind == "measure")
        assert measured.argv[-2:] == ("clock=contention", "threads=20")
        assert plan.steps[-1].name == f"{measured.name}:symbols", "the guest is asked for its modules"
        assert params["cpus"] == (4, 20, 1)
        assert params.get("threads", 20) == 20
        assert plan.disk is None or plan.disk.threads == 20


@pytest.mark.parametrize("name", sorted(CATALOG))
def test_on_other_clocks_nothing_of_it_is_there(name: str) -> None:
    workload = CATALOG[name]
    params = workload.resolve("smoke", {})
    assert not {"cpus", "machine"} & params.keys()
    plan = workload.plan(params, iterations=2, warmup=1)
    assert not any("list" in step.argv or "clock=contention" in step.argv for step in plan.steps)
    with pytest.raises(UnknownParam):
        workload.resolve("smoke", {"cpus": [2]})


def test_metrics_are_those_of_each_number_of_cpus() -> None:
    params = CATALOG["showgids"].resolve("smoke", {"cpus": [1, 32]}, clock="contention")
    metrics = CATALOG["showgids"].metrics_of(params, clock="contention")
    assert list(metrics) == [
        "cycles_per_open_1", "cycles_per_open_32", "slowdown_1", "slowdown_32", "waiting_1", "waiting_32",
    ]  # fmt: skip
    assert [metric.name for metric in metrics.values() if metric.primary] == [
        "cycles_per_open_1",
        "cycles_per_open_32",
    ]


@pytest.mark.hostile
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"cpus": []}, "cpus"),
        ({"cpus": [0]}, "whole numbers from 1 to 64"),
        ({"cpus": [-1]}, "whole numbers from 1 to 64"),
        ({"cpus": [MOST_CPUS + 1]}, "whole numbers from 1 to 64"),
        ({"cpus": [2, 2]}, "numbers that differ from each other"),
        ({"cpus": "many"}, "whole numbers from 1 to 64"),
        ({"cpus": [True]}, "whole numbers from 1 to 64"),
        ({"cpus": list(range(1, 40))}, "cpus"),
        ({"machine": "mine"}, "one-socket, two-socket"),
        (
            {"cpus": [4], "threads": 3},
            r"threads = 3 cannot be used with the contention clock.*set cpus = \[3\]",
        ),
    ],
)
def test_numbers_of_cpus_that_mean_nothing_are_refused(given: dict[str, object], said: str) -> None:
    with pytest.raises(BadParam, match=said):
        CATALOG["showgids"].resolve("smoke", given, clock="contention")


def records(*lines: dict[str, object]) -> list[Record]:
    text = "".join(json.dumps(line) + "\n" for line in lines).encode()
    return [
        Record(0, "out", "open", text),
        Record(1, "exit", "open", b'{"status":0,"signal":0,"timed_out":false}'),
    ]


def line(iteration: int, *, warmup: bool = False, **more: object) -> dict[str, object]:
    return {"iteration": iteration, "warmup": warmup, "values": {"elapsed": 1.5}, "operations": 128, **more}


def test_only_the_number_of_operations_is_taken() -> None:
    readings = CATALOG["showgids"].read(records(line(0, warmup=True), line(1)), clock="contention")
    assert [(iteration.warmup, iteration.values) for iteration in readings.iterations] == [
        (True, {"operations": 128.0}), (False, {"operations": 128.0}),
    ]  # fmt: skip
    assert readings.line == ""


@pytest.mark.hostile
@pytest.mark.parametrize("count", [0, -1, None, "128", True, float("inf"), [1]])
def test_a_number_of_operations_that_is_none_is_refused(count: object) -> None:
    with pytest.raises(OutputUnreadable):
        CATALOG["showgids"].read(records(line(0, operations=count)), clock="contention")


@pytest.mark.hostile
def test_warm_ups_alone_are_no_result() -> None:
    with pytest.raises(OutputUnreadable, match="no iteration was recorded"):
        CATALOG["showgids"].read(records(line(0, warmup=True)), clock="contention")
