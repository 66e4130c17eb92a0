# SPDX-License-Identifier: GPL-2.0-or-later
from typing import Any

import pytest

from lab.runs.validity import gates

QUIET = {"host_cpus": 2, "load_before": 1.9, "load_after": 2.2, "steal_share": 0.01}


def gates_of(
    host: dict[str, Any] | None = None, guest: dict[str, Any] | None = None, **more: Any
) -> list[str]:
    return gates({"host": QUIET | (host or {}), "guest": guest or {}}, **more)


def test_a_quiet_boot_is_valid() -> None:
    assert gates_of() == []


def test_facts_that_nobody_recorded_are_not_judged() -> None:
    assert gates({}) == []


@pytest.mark.parametrize(
    ("host", "line"),
    [
        ({"steal_share": 0.12}, "12.0% of the host's CPU time was stolen, 5% are allowed"),
        ({"load_after": 9.1}, "the host's load was 9.1, at most 4 is allowed on its 2 CPUs"),
        ({"load_before": 5.0}, "the host's load was 5.0, at most 4 is allowed on its 2 CPUs"),
        ({"throttled": 3}, "the host's CPUs were throttled 3 times"),
    ],
)
def test_a_host_that_was_busy_elsewhere_is_named(host: dict[str, Any], line: str) -> None:
    assert gates_of(host) == [line]


def test_instructions_count_the_same_on_a_busy_host() -> None:
    assert gates_of({"load_after": 50.0, "steal_share": 0.5}, clock="instructions") == []


def test_a_clock_source_that_changed_is_named() -> None:
    guest = {"clocksource": "tsc", "clocksource_after": "hpet"}
    assert gates_of(guest=guest) == ["the clock source changed from tsc to hpet"]


def test_the_tsc_whose_rate_is_refined_is_still_the_tsc() -> None:
    assert gates_of(guest={"clocksource": "tsc-early", "clocksource_after": "tsc"}) == []


def test_a_kernel_that_complained_is_named_but_a_leak_is_not() -> None:
    findings = [{"kind": "leak", "title": "x"}, {"kind": "warning", "title": "WARNING: at fs/x.c:1"}]
    assert gates_of(findings=findings) == ["the kernel complained: WARNING: at fs/x.c:1"]


def test_lost_samples_and_a_warm_cache_are_named() -> None:
    lines = gates_of(lost_share=0.02, state_proven=False)
    assert lines == [
        "2.0% of the samples were lost, 1% are allowed",
        "the caches were not in the requested state",
    ]


def test_a_machine_that_is_not_tuned_as_declared_leaves_its_boot_out() -> None:
    line = "governor: asked performance, is schedutil"
    environment = {"host": QUIET, "tuning": {"asked": {"governor": "performance"}, "untuned": [line]}}
    assert gates(environment) == [f"the machine was not tuned: {line}"]
    assert gates({"host": QUIET, "tuning": {"asked": {"governor": "performance"}, "untuned": []}}) == []


@pytest.mark.parametrize("clock", ["wall", "instructions"])
def test_a_boot_that_went_another_way_than_those_of_its_block_does_not_count(clock: str) -> None:
    line = "it was booted by power, the other boots of its block by kexec"
    assert gates({"host": {"way": "power", "way_of_block": "kexec"}}, clock=clock) == [line]
    for host in ({"way": "kexec", "way_of_block": "kexec"}, {"way": "power"}, {"way_of_block": ""}):
        assert gates({"host": host}, clock=clock) == []
