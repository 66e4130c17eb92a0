# SPDX-License-Identifier: GPL-2.0-or-later
"""The metal driver over the real pages and tables, with machines that play: each way to end has its name."""

from __future__ import annotations

import errno
import os
import re
import signal
import socket
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import Client

from lab.models import Netboot
from lab.storage.directory import DirectoryStorage
from lab.targets.netboot.boots import left_on
from lab.tests.stores import directory_store
from workers.drivers.metal import MetalDriver
from workers.errors import (
    BmcFailed,
    BootDiscarded,
    BootFailed,
    ClaimLost,
    GuestPanicked,
    GuestSilent,
    TargetLost,
    TargetVanished,
    WrongKernel,
)
from workers.run import boot
from workers.tests.metalbench import BYE, RELEASE, Bench, metal_bench
from workers.tests.pretendmachine import MAC, PretendMachine
from workloads.guest.plan import Plan
from workloads.guest.records import gather

pytestmark = pytest.mark.django_db(transaction=True)

PANIC = b"[    3.1] sysrq: Trigger a crash\n[    3.2] Kernel panic - not syncing: sysrq triggered crash\n"


def boots_well(machine: PretendMachine) -> None:
    machine.fetch_script()
    machine.hello(RELEASE)
    machine.post("console", b"[    0.0] Linux version 6.1\n")
    machine.send("out", "sh", b"hi")
    machine.send("bye", "-", BYE)
    machine.on = False


def fetches_only(machine: PretendMachine) -> None:
    machine.fetch_script()


@pytest.fixture
def bench(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return metal_bench(tmp_path, settings, monkeypatch)


def test_a_machine_that_behaves_is_heard_out_and_turned_off(bench: Bench) -> None:
    machine = PretendMachine(boots_well)
    with bench.driver(machine).boot(bench.request) as session:
        records = list(session.records(20))
    assert [record.kind for record in records] == ["out", "bye"]
    assert gather(records, "out", "sh") == b"hi"
    assert machine.done[:3] == ["turn_off", "boot_from_network", "turn_on"]
    assert machine.done[-1] == "turn_off"
    assert bench.request.console.read_bytes() == b"[    0.0] Linux version 6.1\n"
    assert b"KPL1 2 out sh" in bench.request.raw_records.read_bytes()
    assert (session.host["machine"], session.host["accelerator"]) == ("metal", "none")
    assert {"firmware_s", "boot_s"} <= session.host.keys()
    assert session.host["fetched_from"] == "127.0.0.1"
    assert "load_before" not in session.host


def test_the_token_is_not_kept_with_what_the_machine_said(bench: Bench) -> None:
    machine = PretendMachine(boots_well)
    with bench.driver(machine).boot(bench.request) as session:
        list(session.records(20))
    assert session.hello["cmdline"].endswith("/netboot/…")


def test_the_script_has_what_machine_and_plan_need(bench: Bench) -> None:
    said = []

    def boots(machine: PretendMachine) -> None:
        said.append(machine.fetch_script())
        machine.hello(RELEASE)
        machine.send("bye", "-", BYE)

    bench.run(boots)
    words = said[0].split()
    assert {"ip=dhcp", "oops=panic", "panic=-1", "kperflab.console=report", "brd.rd_size=1"} <= set(words)


def test_a_machine_that_never_asks_is_the_labs_fault_and_names_the_address(bench: Bench) -> None:
    with pytest.raises(
        TargetLost, match=rf"within 0\.5 s.*http://10\.0\.2\.2:8000/netboot/{MAC}\.ipxe"
    ) as caught:
        bench.run(lambda machine: None, fetch_s=0.5)
    assert (caught.value.blame, caught.value.retry) == ("lab", True)


def test_a_worker_gives_signs_of_life_while_a_machines_firmware_takes_its_time(bench: Bench) -> None:
    """Firmware, BMC and kernel may together take longer than work may be silent."""
    signs: list[None] = []

    def boots(machine: PretendMachine) -> None:
        end = time.monotonic() + 10
        while len(signs) < 3 and time.monotonic() < end:
            time.sleep(0.01)
        machine.fetch_script()
        machine.hello(RELEASE)
        machine.send("bye", "-", BYE)

    worker = SimpleNamespace(beat=lambda: signs.append(None))
    boot(bench.request, Plan(()), bench.driver(PretendMachine(boots), fetch_s=2), worker)


def test_a_machine_that_fetches_its_script_and_nothing_else_did_not_load(bench: Bench) -> None:
    with pytest.raises(TargetLost, match="not its kernel and initrd"):
        bench.run(fetches_only, load_s=0.5)


def test_a_machine_that_starts_again_and_again_before_it_loads_is_noticed_at_once(bench: Bench) -> None:
    def boots(machine: PretendMachine) -> None:
        machine.fetch_script()
        assert machine.fetch_script().endswith("exit\n")

    with pytest.raises(TargetLost, match="asked for its script 2 times"):
        bench.run(boots)


def test_a_boot_whose_script_another_address_fetched_too_is_discarded_before_it_loads(bench: Bench) -> None:
    def boots(machine: PretendMachine) -> None:
        script = Client().get(f"/netboot/{MAC}.ipxe").content.decode()
        chain = re.search(r"chain http://[0-9.:]+(/netboot/\S+)", script)
        assert chain
        for address in ("127.0.0.1", "192.0.2.9"):
            Client().get(chain[1], REMOTE_ADDR=address)

    with pytest.raises(BootDiscarded, match=r"two addresses, 127\.0\.0\.1 and 192\.0\.2\.9"):
        bench.run(boots)


def test_a_machine_that_is_still_on_does_not_take_the_script_of_the_boot_to_come(bench: Bench) -> None:
    def asks_while_on() -> None:
        if machine.on:
            machine.fetch_script()

    machine = PretendMachine(boots_well, on=True, while_off=asks_while_on)
    with bench.driver(machine).boot(bench.request) as session:
        assert list(session.records(20))


def test_an_answer_that_nobody_waits_for_any_more_does_not_use_up_the_script(bench: Bench) -> None:
    """A request from before the machine was turned off waits in the socket of a server that is down, and is answered now."""

    def boots(machine: PretendMachine) -> None:
        assert Client().get(f"/netboot/{MAC}.ipxe").status_code == 200
        boots_well(machine)

    bench.run(boots)


def test_a_machine_that_starts_again_while_the_kernel_boots_is_a_failed_boot(bench: Bench) -> None:
    def boots(machine: PretendMachine) -> None:
        machine.fetch_script()
        machine.load()
        machine.fetch_script()

    with pytest.raises(BootFailed, match="the machine reset or switched itself off while it booted"):
        bench.run(boots)


def test_a_machine_that_loads_and_says_nothing_is_a_failed_boot(bench: Bench) -> None:
    def boots(machine: PretendMachine) -> None:
        machine.fetch_script()
        machine.load()

    with pytest.raises(BootFailed, match="did not reach its user space within 1 s"):
        bench.run(boots, boot_deadline_s=1)


def test_another_kernel_than_the_labs_is_refused(bench: Bench) -> None:
    def boots(machine: PretendMachine) -> None:
        machine.fetch_script()
        machine.hello("6.6.6-of-somebody-else")

    with pytest.raises(WrongKernel, match=r'the machine runs kernel "6\.6\.6-of-somebody-else"'):
        bench.run(boots)


def test_a_panic_is_read_from_the_console_that_the_machine_hands_in(bench: Bench) -> None:
    def boots(machine: PretendMachine) -> None:
        machine.fetch_script()
        machine.hello(RELEASE)
        machine.post("console", PANIC)

    with pytest.raises(GuestPanicked, match="sysrq triggered crash"):
        bench.run(boots)


def test_a_store_that_goes_away_during_a_boot_changes_nothing_of_what_became_of_it(
    bench: Bench, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(_self: DirectoryStorage, _name: str) -> None:
        raise OSError(errno.EIO, "Input/output error")

    def panics(machine: PretendMachine) -> None:
        machine.fetch_script()
        machine.hello(RELEASE)
        machine.post("console", PANIC)

    directory_store(settings, bench.home / "store")
    monkeypatch.setattr(DirectoryStorage, "delete", away)
    bench.run(boots_well)
    with pytest.raises(GuestPanicked, match="sysrq triggered crash"):
        bench.run(panics)


def test_a_reset_without_a_word_is_told_by_the_second_fetch(bench: Bench) -> None:
    def boots(machine: PretendMachine) -> None:
        machine.fetch_script()
        machine.hello(RELEASE)
        machine.send("step", "walk", b"{}")
        machine.fetch_script()

    with pytest.raises(GuestPanicked, match='reset or switched itself off in step "walk"'):
        bench.run(boots)


@pytest.mark.hostile
def test_a_machine_that_is_off_in_the_middle_vanished_and_that_is_not_held_against_it(bench: Bench) -> None:
    def boots(machine: PretendMachine) -> None:
        machine.fetch_script()
        machine.hello(RELEASE)
        machine.send("step", "walk", b"{}")
        machine.on = False

    with pytest.raises(TargetVanished, match='turned off or crashed in step "walk"') as caught:
        bench.run(boots)
    assert caught.value.spares_target


@pytest.mark.hostile
def test_a_machine_that_is_silent_together_with_its_bmc_vanished(bench: Bench) -> None:
    def boots(machine: PretendMachine) -> None:
        machine.fetch_script()
        machine.hello(RELEASE)
        machine.problem = BmcFailed("the BMC does not answer")

    machine = PretendMachine(boots)
    with (
        pytest.raises(TargetVanished, match="its BMC does not answer: the BMC does not answer"),
        bench.driver(machine).boot(replace(bench.request, silence_deadline_s=2)) as session,
    ):
        list(session.records(20))


def test_a_machine_that_falls_silent_is_silent(bench: Bench) -> None:
    def boots(machine: PretendMachine) -> None:
        machine.fetch_script()
        machine.hello(RELEASE)

    with pytest.raises(GuestSilent, match="no sign of life from the machine for 1 s"):
        bench.run(boots, silence_deadline_s=1)


def test_a_bmc_that_dies_in_the_middle_costs_no_results_and_the_machine_is_turned_off_later(
    bench: Bench,
) -> None:
    def boots(machine: PretendMachine) -> None:
        machine.fetch_script()
        machine.hello(RELEASE)
        machine.problem = BmcFailed("the BMC does not answer")
        machine.send("bye", "-", BYE)

    machine = PretendMachine(boots)
    driver = bench.driver(machine)
    with driver.boot(bench.request) as session:
        assert [record.kind for record in session.records(20)] == ["bye"]
    assert machine.on
    assert [netboot.target for netboot in left_on()] == ["metal-1"]
    assert driver.sweep() == []
    machine.problem = None
    assert driver.sweep() == ["metal-1"]
    assert (machine.on, left_on()) == (False, [])


def test_a_bmc_that_is_dead_from_the_start_is_the_labs_fault(bench: Bench) -> None:
    machine = PretendMachine(boots_well, problem=BmcFailed("the BMC at 127.0.0.1 does not answer"))
    with pytest.raises(BmcFailed), bench.driver(machine).boot(bench.request):
        pass
    assert machine.done == ["turn_off", "turn_off"]


def test_a_machine_whose_worker_was_killed_is_turned_off_but_not_one_that_boots_again(bench: Bench) -> None:
    machine = PretendMachine(lambda machine: None)
    driver = bench.driver(machine, fetch_s=0.5)
    with pytest.raises(TargetLost), driver.boot(bench.request):
        pass
    # As a worker leaves it that is killed: the machine on, the boot open, its process gone.
    machine.on = True
    Netboot.objects.update(closed_at=None, owner=f"{os.uname().nodename}:4194305:1")
    assert driver.sweep() == ["metal-1"]
    assert not machine.on
    assert driver.sweep() == []


def test_a_cancel_that_comes_again_and_again_does_not_keep_the_machine_on(bench: Bench) -> None:
    """As a lost claim stops the work: by an exception in the main thread each second, wherever it is."""
    listening, may_be_off = threading.Event(), threading.Event()
    first = iter((True,))

    def boots(machine: PretendMachine) -> None:
        machine.fetch_script()
        machine.hello(RELEASE)
        if next(first, False) and listening.wait(20):
            # Ends the wait for records.
            machine.while_off = stay_on
            interrupt_main()

    def stay_on() -> None:
        # Ends the wait for the machine to be off.
        interrupt_main()
        may_be_off.wait(20)

    def interrupt_main() -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)

    def interrupt(_number: int, _frame: object) -> None:
        raise ClaimLost("run 1 was cancelled")

    def hear_out(driver: MetalDriver) -> None:
        with driver.boot(bench.request) as session:
            listening.set()
            list(session.records(20))

    machine = PretendMachine(boots)
    driver = bench.driver(machine)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(ClaimLost):
            hear_out(driver)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert machine.is_on()
    machine.while_off = lambda: None
    may_be_off.set()
    with driver.boot(bench.request):
        # The next boot waits until the one before has left.
        assert machine.done.count("turn_off") == 3
    assert not machine.is_on()
    assert left_on() == []


def test_a_console_that_cannot_be_had_is_said(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    """As where two machines of one host are given the same port: a panic of the second one would not be seen."""
    with socket.socket(type=socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        console = {"address": "127.0.0.2", "to": "127.0.0.1", "port": taken.getsockname()[1]}
        bench.run(boots_well, access={**bench.request.access, "console": {"kind": "netconsole", **console}})
    assert "metal-1: nothing is seen of its console for now: cannot listen on 127.0.0.1:" in caplog.text


def test_a_token_is_of_no_use_in_the_next_boot(bench: Bench) -> None:
    first = bench.run(boots_well)

    def boots(machine: PretendMachine) -> None:
        assert first.post("records", b"stale") == 404
        boots_well(machine)

    bench.run(boots)
    assert first.post("records", b"stale") == 404
