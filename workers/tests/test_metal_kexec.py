# SPDX-License-Identifier: GPL-2.0-or-later
"""From boot to boot by kexec, and whatever keeps a machine from it ends in a boot by power."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from lab.models import Netboot
from lab.targets.netboot.boots import close_netboot, left_on
from workers.drivers import kexec
from workers.drivers.base import BootRequest
from workers.drivers.machine_session import MachineSession
from workers.drivers.metal import KEXEC_CONSOLE, MetalDriver
from workers.errors import ClaimLost, GuestPanicked, GuestSilent, WrongKernel
from workers.tests.metalbench import BYE, RELEASE, Bench, metal_bench
from workers.tests.pretendmachine import THREAD, PretendMachine

pytestmark = pytest.mark.django_db(transaction=True)

Boots = Callable[[PretendMachine], None]
NEXT = "6.1.0-k2"


@pytest.fixture
def bench(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setattr(kexec, "ASK_S", 2.0)
    monkeypatch.setattr(kexec, "TAKE_S", 2.0)
    yield metal_bench(tmp_path, settings, monkeypatch, kexec=True)
    # Machines that still wait are sent away, lest one asks the next test's lab.
    for boot in Netboot.objects.filter(closed_at=None):
        close_netboot(boot.pk)
    for thread in threading.enumerate():
        if thread.name == THREAD:
            thread.join(5)


def works(machine: PretendMachine, release: str = RELEASE, bye: bytes = BYE) -> None:
    machine.hello(release)
    machine.post("console", b"[    0.0] Linux version 6.1\n")
    machine.send("bye", "-", bye)


def by_power_and_then(*after: Boots) -> Boots:
    """A machine that does well by power, and after the first time by kexec what `after` says, one after the other."""
    waiting = list(after)

    def boots(machine: PretendMachine) -> None:
        machine.fetch_script()
        works(machine)
        while machine.follow():
            if not waiting:
                works(machine)
                continue
            waiting.pop(0)(machine)
            return
        machine.on = False

    return boots


def booted(driver: MetalDriver, request: BootRequest) -> MachineSession:
    """A boot that was heard out."""
    with driver.boot(request) as session:
        list(session.records(20))
    return session


def ways(machine: PretendMachine) -> int:
    """Return how often it was turned on."""
    return machine.done.count("turn_on")


def test_a_machine_that_waits_starts_the_next_kernel_without_its_firmware(bench: Bench) -> None:
    machine = PretendMachine(by_power_and_then(lambda machine: works(machine, NEXT)))
    driver = bench.driver(machine)
    first = booted(driver, bench.request)
    assert (first.host["way"], machine.on, machine.done[-1]) == ("power", True, "turn_on")
    second = booted(driver, replace(bench.request, release=NEXT))
    assert (second.host["way"], second.hello["release"]) == ("kexec", NEXT)
    assert (ways(machine), machine.on) == (1, True)
    assert "firmware_s" not in second.host
    assert {"boot_s", "fetched_from"} <= second.host.keys()
    assert "kexec_failed" not in second.host
    assert second.hello["cmdline"].endswith("/netboot/…")
    assert {"kperflab.then=kexec", "kperflab.console=report", "brd.rd_size=1"} <= set(machine.cmdline.split())


def test_a_worker_gives_signs_of_life_while_the_next_kernel_starts(bench: Bench) -> None:
    """If kexec fails, the firmware's time comes on top."""
    signs: list[None] = []

    def slowly(machine: PretendMachine) -> None:
        end, before = time.monotonic() + 10, len(signs)
        while len(signs) < before + 3 and time.monotonic() < end:
            time.sleep(0.01)
        assert len(signs) >= before + 3
        works(machine, NEXT)

    driver = bench.driver(PretendMachine(by_power_and_then(slowly)))
    booted(driver, bench.request)
    second = booted(driver, replace(bench.request, release=NEXT, on_wait=lambda: signs.append(None)))
    assert second.host["way"] == "kexec"


def test_a_machine_that_is_not_to_is_turned_off_after_each_boot_and_told_nothing_of_it(
    tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = metal_bench(tmp_path, settings, monkeypatch)
    said = []

    def boots(machine: PretendMachine) -> None:
        said.append(machine.fetch_script())
        works(machine)

    machine = bench.run(boots)
    assert machine.done[-1] == "turn_off"
    assert "kperflab.then" not in said[0]


def test_a_boot_whose_block_went_by_power_goes_by_power_though_the_machine_waits(bench: Bench) -> None:
    machine = PretendMachine(by_power_and_then())
    driver = bench.driver(machine)
    booted(driver, bench.request)
    second = booted(driver, replace(bench.request, way="power"))
    assert (second.host["way"], second.host["way_of_block"], ways(machine)) == ("power", "power", 2)


def test_a_boot_whose_block_went_by_kexec_says_so_where_no_machine_waits(bench: Bench) -> None:
    machine = PretendMachine(by_power_and_then())
    session = booted(bench.driver(machine), replace(bench.request, way="kexec"))
    assert (session.host["way"], session.host["way_of_block"]) == ("power", "kexec")


def refuses(machine: PretendMachine) -> None:
    machine.load()
    machine.post("kexec", b"this kernel cannot load another: kexec_load failed:\nFunction not implemented\n")
    machine.on = False


def resets(machine: PretendMachine) -> None:
    machine.load()
    machine.fetch_script()


def is_wrong(machine: PretendMachine) -> None:
    machine.hello("6.6.6-of-somebody-else")


def panics(machine: PretendMachine) -> None:
    machine.load()
    machine.post("console", b"[    0.1] Kernel panic - not syncing: no memory\n")


@pytest.mark.parametrize(
    ("goes_wrong", "said"),
    [
        (refuses, "this kernel cannot load another: kexec_load failed: Function not implemented"),
        (resets, "the machine started again before the next kernel said a word"),
        (lambda machine: machine.load(), "the next kernel said nothing within 1.5 s"),
        (lambda machine: None, "the next kernel said nothing within 1.5 s"),
        (is_wrong, 'the machine runs kernel "6.6.6-of-somebody-else", not "6.1.0-k1"'),
        (panics, "while it booted: Kernel panic - not syncing: no memory"),
    ],
)
def test_a_kexec_that_comes_to_nothing_is_followed_by_a_boot_by_power(
    bench: Bench, goes_wrong: Boots, said: str
) -> None:
    machine = PretendMachine(by_power_and_then(goes_wrong))
    driver = bench.driver(machine, load_s=1)
    booted(driver, bench.request)
    second = booted(driver, replace(bench.request, boot_deadline_s=0.5))
    assert (second.host["way"], second.hello["release"], ways(machine)) == ("power", RELEASE, 2)
    assert second.host["kexec_failed"].startswith(said)
    # The machine was off in between, and what the kernel said by then is not a word of the one that was judged.
    assert machine.done.count("turn_off") == 3
    assert b"panic" not in bench.request.console.read_bytes()
    kept = (bench.request.directory / KEXEC_CONSOLE).read_bytes()
    assert (b"panic" in kept) == (goes_wrong is panics)
    # What began by power may go on by kexec.
    assert booted(driver, bench.request).host["way"] == "kexec"


def test_a_machine_that_does_not_take_the_offer_is_booted_by_power(bench: Bench) -> None:
    def boots(machine: PretendMachine) -> None:
        machine.fetch_script()
        works(machine)
        # It asks, and is dead from then on.
        assert machine.ask().status_code == 204

    machine = PretendMachine(boots)
    driver = bench.driver(machine)
    booted(driver, bench.request)
    second = booted(driver, bench.request)
    assert second.host["kexec_failed"] == "the waiting machine did not fetch the offered boot within 2 s"
    assert (second.host["way"], ways(machine)) == ("power", 2)


def test_a_kernel_is_judged_by_its_boot_by_power(bench: Bench) -> None:
    machine = PretendMachine(by_power_and_then(is_wrong))
    driver = bench.driver(machine)
    booted(driver, bench.request)
    with (
        pytest.raises(WrongKernel, match=r'runs kernel "6\.1\.0-k1"'),
        driver.boot(replace(bench.request, release=NEXT)),
    ):
        pass
    assert (ways(machine), machine.on) == (2, False)


def hear_out(bench: Bench, boots: Boots, **request: Any) -> PretendMachine:
    machine = PretendMachine(boots)
    try:
        booted(bench.driver(machine), replace(bench.request, **request))
    finally:
        assert (machine.on, machine.done[-1]) == (False, "turn_off")
        assert not Netboot.objects.filter(closed_at=None).exists()
    return machine


def says(kind: str, *rest: Any) -> Boots:
    def boots(machine: PretendMachine) -> None:
        machine.fetch_script()
        machine.hello(RELEASE)
        getattr(machine, kind)(*rest)

    return boots


@pytest.mark.parametrize(
    ("boots", "raised"),
    [
        (
            says("post", "console", b"[    3.2] Kernel panic - not syncing: sysrq triggered crash\n"),
            GuestPanicked,
        ),
        (says("send", "step", "walk", b"{}"), GuestSilent),
        (says("fetch_script"), GuestPanicked),
    ],
)
def test_a_kernel_that_crashed_or_hangs_starts_no_other(
    bench: Bench, boots: Boots, raised: type[Exception]
) -> None:
    with pytest.raises(raised):
        hear_out(bench, boots, silence_deadline_s=1)


def test_a_wrong_kernel_starts_no_other(bench: Bench) -> None:
    def boots(machine: PretendMachine) -> None:
        machine.fetch_script()
        works(machine, "6.6.6-of-somebody-else")

    with pytest.raises(WrongKernel):
        hear_out(bench, boots)


@pytest.mark.parametrize(
    "bye",
    [
        b'{"completed":false,"uptime_s":3.0,"clocksource":"tsc"}',
        b"nonsense",
        b"[]",
        b'{"completed":1}',
    ],
)
def test_a_kernel_that_did_not_carry_out_its_plan_starts_no_other(bench: Bench, bye: bytes) -> None:
    def boots(machine: PretendMachine) -> None:
        machine.fetch_script()
        works(machine, bye=bye)

    hear_out(bench, boots)


def test_a_kernel_that_complained_starts_no_other(bench: Bench) -> None:
    def boots(machine: PretendMachine) -> None:
        machine.fetch_script()
        machine.hello(RELEASE)
        machine.post("console", b"[    2.0] WARNING: CPU: 0 PID: 1 at kernel/fork.c:1 copy_process+0x1/0x2\n")
        machine.send("out", "sh", b"hi")
        machine.send("bye", "-", BYE)

    hear_out(bench, boots)


def test_what_a_caller_throws_after_the_last_record_turns_the_machine_off(bench: Bench) -> None:
    machine = PretendMachine(by_power_and_then())

    def hears() -> None:
        with bench.driver(machine).boot(bench.request) as session:
            list(session.records(20))
            raise ClaimLost("run 1 was cancelled")

    with pytest.raises(ClaimLost):
        hears()
    assert (machine.on, left_on()) == (False, [])


def test_a_machine_that_waits_in_vain_goes_away_and_is_turned_off(bench: Bench) -> None:
    machine = PretendMachine(by_power_and_then())
    driver = bench.driver(machine)
    booted(driver, bench.request)
    assert driver.sweep() == []
    # Its time to wait is over.
    assert Netboot.objects.filter(closed_at=None).update(expires_at=timezone.now()) == 1
    assert driver.sweep() == ["metal-1"]
    assert (machine.on, left_on()) == (False, [])
    assert booted(driver, bench.request).host["way"] == "power"


def test_a_cancel_while_the_next_kernel_is_awaited_turns_the_machine_off(bench: Bench) -> None:
    def interrupt(_number: int, _frame: object) -> None:
        raise ClaimLost("run 1 was cancelled")

    def boots(machine: PretendMachine) -> None:
        machine.load()
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)

    machine = PretendMachine(by_power_and_then(boots))
    driver = bench.driver(machine)
    booted(driver, bench.request)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(ClaimLost), driver.boot(bench.request):
            pass
    finally:
        signal.signal(signal.SIGALRM, before)
    assert (ways(machine), machine.on) == (1, False)
    assert not Netboot.objects.filter(closed_at=None).exists()


def test_a_refusal_is_bounded_and_one_line(bench: Bench) -> None:
    def boots(machine: PretendMachine) -> None:
        machine.post("kexec", b"no\n" * 1000)

    machine = PretendMachine(by_power_and_then(boots))
    driver = bench.driver(machine)
    booted(driver, bench.request)
    assert len(booted(driver, bench.request).host["kexec_failed"]) <= kexec.LONGEST_REFUSAL
