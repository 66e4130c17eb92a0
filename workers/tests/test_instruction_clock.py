# SPDX-License-Identifier: GPL-2.0-or-later
"""The instruction clock on a real kernel: boots that agree to the last instruction, and what still works there."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kernels.artifacts.store import Artifact
from workers.boot_request import Job, boot_request
from workers.drivers.base import BootRequest, Machine
from workers.drivers.libvirt import LibvirtDriver
from workers.errors import GuestHung, GuestPanicked
from workers.tests.test_driver_real import driver, home  # noqa: F401 fixtures
from workloads.catalog import Workload, load_catalog
from workloads.guest.plan import Plan, Step
from workloads.guest.records import Record, gather
from workloads.readings import Iteration

pytestmark = [pytest.mark.real, pytest.mark.campaign]

MACHINE = Machine(1, 768, "tcg", "instructions")
Ask = Callable[..., BootRequest]


@pytest.fixture
def directory(home: Path, request: pytest.FixtureRequest) -> Path:  # noqa: F811
    directory: Path = home / "runs" / request.node.name
    directory.mkdir(parents=True, exist_ok=True)
    return directory


@pytest.fixture
def ask(artifact: Artifact, home: Path, directory: Path) -> Ask:  # noqa: F811
    def make(plan: Plan, workload: Workload) -> BootRequest:
        return boot_request(Job("a test", workload, plan, MACHINE), artifact, home, directory)

    return make


def script(text: str, deadline_s: float = 30) -> Plan:
    return Plan((Step("sh", ("/bin/sh", "-c", text), deadline_s, "measure"),))


def records_of(driver: LibvirtDriver, request: BootRequest, deadline_s: float = 120) -> list[Record]:  # noqa: F811
    with driver.boot(request) as session:
        return [record for record in session.records(deadline_s) if record.kind != "beat"]


@pytest.mark.parametrize("cache", ["warm", "cold"])
def test_two_boots_agree_to_the_last_instruction(driver: LibvirtDriver, ask: Ask, cache: str) -> None:  # noqa: F811
    workload = load_catalog()["stat-walk"]
    params = workload.resolve("smoke", {"cache": cache}, clock="instructions")
    plan = workload.plan(params, iterations=2, warmup=1, clock="instructions")

    def walk() -> tuple[Iteration, ...]:
        return workload.read(records_of(driver, ask(plan, workload)), clock="instructions").iterations

    first, second = walk(), walk()
    assert first == second
    counted = first[-1].values
    # A path of the kernel's, in instructions: neither nanoseconds nor nothing.
    assert 500 < counted["instructions_per_stat"] < 100_000
    assert counted["instructions"] == int(counted["instructions"])


def test_programs_find_their_memory_and_the_clock_where_they_found_it_before(
    driver: LibvirtDriver,  # noqa: F811
    ask: Ask,
) -> None:
    plan = script("cat /proc/self/maps /proc/sys/kernel/random/uuid /proc/uptime; date")
    request = ask(plan, load_catalog()["showgids"])
    first = gather(records_of(driver, request), "out", "sh")
    assert b"[stack]" in first
    assert gather(records_of(driver, request), "out", "sh") == first


def test_a_step_that_does_not_end_is_killed_at_its_deadline_though_its_clock_leaps(
    driver: LibvirtDriver,  # noqa: F811
    ask: Ask,
) -> None:
    records = records_of(
        driver, ask(script("echo before; sleep 600", deadline_s=60), load_catalog()["showgids"])
    )
    (ending,) = (json.loads(record.payload) for record in records if record.kind == "exit")
    assert ending["timed_out"] is True
    assert gather(records, "out", "sh") == b"before\n"
    assert records[-1].kind == "bye"


def test_a_megabyte_of_output_comes_home_whole(driver: LibvirtDriver, ask: Ask) -> None:  # noqa: F811
    # More than the pipe to us holds.
    text = "seq 1 200000"
    records = records_of(driver, ask(script(text), load_catalog()["showgids"]))
    assert gather(records, "out", "sh") == b"".join(b"%d\n" % number for number in range(1, 200_001))


def test_a_panic_is_seen_at_once_while_records_are_held(driver: LibvirtDriver, ask: Ask) -> None:  # noqa: F811
    with pytest.raises(GuestPanicked, match="sysrq triggered crash"):
        records_of(driver, ask(script("echo c > /proc/sysrq-trigger"), load_catalog()["showgids"]))


def test_a_guest_that_does_not_end_in_our_time_has_hung(driver: LibvirtDriver, ask: Ask) -> None:  # noqa: F811
    request = ask(script("while :; do :; done", deadline_s=1e6), load_catalog()["showgids"])
    with (
        driver.boot(replace(request, name="endless")) as session,
        pytest.raises(GuestHung, match="within 3 s"),
    ):
        list(session.records(3))
