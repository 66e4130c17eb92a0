# SPDX-License-Identifier: GPL-2.0-or-later
"""The driver's needs of its host: libvirt within a deadline, the clock's rate, the load."""

from __future__ import annotations

import platform
import threading
from collections.abc import Callable
from dataclasses import replace

import libvirt
import pytest

from workers.drivers.hostfacts import Moment, change, host_facts, take_moment
from workers.drivers.hypervisor import Hypervisor, within
from workers.drivers.tsc import tsc_khz
from workers.errors import LibvirtMissing, TargetLost


def test_an_answer_in_time_is_handed_on() -> None:
    assert within(5, "to answer", lambda: 42) == 42


def test_an_error_is_handed_on() -> None:
    def fail() -> None:
        raise LibvirtMissing("start it")

    with pytest.raises(LibvirtMissing, match="start it"):
        within(5, "to answer", fail)


def test_an_error_that_nobody_expects_is_not_called_a_slow_daemon() -> None:
    with pytest.raises(ZeroDivisionError):
        within(5, "to answer", lambda: 1 // 0)


def test_a_daemon_that_does_not_answer_is_a_lost_target() -> None:
    never = threading.Event()
    with pytest.raises(TargetLost, match=r"more than 0 s to answer"):
        within(0.05, "to answer", never.wait)
    never.set()


class Libvirt:
    """Stands in for a connection whose domains cannot be destroyed, or are not there, for a reason of libvirt's."""

    def __init__(self, code: int) -> None:
        self.error = libvirt.libvirtError("no")
        self.error.err = (code, 0, "no", 0, "", None, None, 0, 0)

    def isAlive(self) -> bool:
        return True

    def lookupByName(self, name: str) -> object:
        raise self.error


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Hypervisor]:
    """A hypervisor whose libvirt refuses to destroy guests with this code, and that knows how "g" ended."""

    def make(code: int) -> Hypervisor:
        monkeypatch.setattr(Hypervisor, "_connect", lambda self: None)
        hypervisor = Hypervisor("test:///")
        hypervisor._connection = Libvirt(code)
        hypervisor._ends["g"] = libvirt.VIR_DOMAIN_EVENT_STOPPED_SHUTDOWN
        return hypervisor

    return make


@pytest.mark.parametrize("code", [libvirt.VIR_ERR_NO_DOMAIN, libvirt.VIR_ERR_OPERATION_INVALID])
def test_a_guest_that_is_gone_is_destroyed_already_and_its_ending_forgotten(
    refused: Callable[[int], Hypervisor], code: int
) -> None:
    hypervisor = refused(code)
    hypervisor.destroy("g")
    assert hypervisor.how_it_ended("g", 0) == "outside"


def test_a_guest_that_cannot_be_destroyed_loses_the_target(refused: Callable[[int], Hypervisor]) -> None:
    hypervisor = refused(libvirt.VIR_ERR_INTERNAL_ERROR)
    with pytest.raises(TargetLost, match="libvirt cannot destroy g"):
        hypervisor.destroy("g")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="only x86 has this counter")
def test_the_counters_rate_is_measured_the_same_twice() -> None:
    first = tsc_khz()
    tsc_khz.cache_clear()
    assert 500_000 < first < 10_000_000
    assert tsc_khz() == pytest.approx(first, rel=1e-3)


def test_stolen_time_is_told_as_a_share_of_all_time() -> None:
    before = replace(take_moment(), load=1.0)
    after = replace(before, load=3.0, stolen=before.stolen + 10, busy_and_idle=before.busy_and_idle + 200)
    assert change(before, after) == {
        "load_before": 1.0,
        "load_after": 3.0,
        "steal_share": 0.05,
        "throttled": 0,
    }
    assert change(before, before)["steal_share"] == 0.0


def test_the_host_is_named() -> None:
    facts = host_facts()
    assert facts["host_cpu"]
    assert facts["host_cpus"] >= 1


def test_a_core_that_was_slowed_down_for_its_heat_is_counted() -> None:
    before, after = Moment(1.0, 0, 100, 3), Moment(1.0, 0, 200, 5)
    assert change(before, after)["throttled"] == 2
