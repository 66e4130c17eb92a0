# SPDX-License-Identifier: GPL-2.0-or-later
"""The libvirt driver, the agent and a real kernel: what is promised of guests that behave and of those that do not."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from kernels.artifacts.store import Artifact
from workers.drivers.base import BootRequest, Disk, Machine
from workers.drivers.domain_xml import Wiring, domain_xml
from workers.drivers.leftovers import BootId
from workers.drivers.libvirt import LibvirtDriver
from workers.drivers.streams import listen
from workers.errors import (
    BootFailed,
    GuestHung,
    GuestPanicked,
    GuestSilent,
    LibvirtMissing,
    TargetLost,
    TargetVanished,
    WrongKernel,
)
from workers.tests.libvirtd import guests, repeated, start_libvirtd
from workloads.guest.initramfs import build_initramfs
from workloads.guest.pack import append_plan, pack_plan
from workloads.guest.plan import Plan, Step, StepKind
from workloads.guest.records import Record, gather
from workloads.guest.tuning import Tuning, untuned

pytestmark = pytest.mark.real

Ask = Callable[..., BootRequest]


def test_a_missing_daemon_is_told_with_the_command_that_starts_it(tmp_path: Path) -> None:
    with pytest.raises(LibvirtMissing, match="virtlogd -d; libvirtd -d"):
        LibvirtDriver(tmp_path, uri=f"qemu+unix:///system?socket={tmp_path}/none&mode=direct#/system")


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """A state root of these tests' own, where QEMU's user may enter."""
    home = settings.HOME / "driver-tests"
    home.mkdir(parents=True, exist_ok=True)
    # Tests that were killed may have left a boot.
    LibvirtDriver(home).sweep()
    yield home
    LibvirtDriver(home).sweep(lambda _pid, _started: False)


@pytest.fixture
def driver(home: Path) -> Iterator[LibvirtDriver]:
    driver = LibvirtDriver(home)
    yield driver
    driver.close()
    assert driver.hypervisor.domains(driver.traces.prefix) == []
    assert driver.traces.boots() == set()


@pytest.fixture
def ask(home: Path, artifact: Artifact, request: pytest.FixtureRequest) -> Ask:
    return partial(request_of, home, artifact, request.node.name)


def request_of(
    home: Path, artifact: Artifact, name: str, *steps: Step, release: str = "", **more: object
) -> BootRequest:
    directory = home / "runs" / name
    directory.mkdir(parents=True, exist_ok=True)
    plan = Plan(steps)
    append_plan(
        build_initramfs(home, {}).for_plan(plan), pack_plan(plan, {"note": b"hi"}), directory / "initrd"
    )
    wanted: dict[str, object] = {
        "name": name,
        "kernel": artifact.boot_vmlinux,
        "initrd": directory / "initrd",
        "cmdline": "",
        "machine": Machine(2, 512, "tcg"),
        "disks": (),
        "release": release or artifact.metadata.release,
        "directory": directory,
        "boot_deadline_s": 60.0,
        "silence_deadline_s": 10.0,
    }
    return BootRequest(**(wanted | more))  # type: ignore[arg-type]


def sh(script: str, name: str = "sh", deadline_s: float = 30, kind: StepKind = "measure", *send: str) -> Step:
    return Step(name, ("/bin/sh", "-c", script), deadline_s, kind, tuple(send))


def run(driver: LibvirtDriver, request: BootRequest) -> list[Record]:
    return hear_out(driver, request).records


def hear_out(driver: LibvirtDriver, request: BootRequest) -> Said:
    def boot() -> Said:
        with driver.boot(request) as session:
            records = list(session.records(60))
        return Said(session.hello, session.host, records)

    return repeated(boot)


def exits(records: list[Record]) -> dict[str, dict[str, object]]:
    return {record.name: json.loads(record.payload) for record in records if record.kind == "exit"}


@dataclass(frozen=True)
class Said:
    """A boot that was heard out: its hello, what the driver says of the host, and all records."""

    hello: dict[str, Any]
    host: dict[str, Any]
    records: list[Record]


@pytest.fixture(scope="module")
def said(home: Path, artifact: Artifact) -> Said:
    """One guest that talks, returns files, is silent for a while, and is stopped in a step that takes too long."""
    request = request_of(
        home,
        artifact,
        "said",
        sh("cat /plan/files/note; echo odd >&2", "talk"),
        sh("dd if=/dev/urandom of=/tmp/noise bs=1k count=300 2>/dev/null; sha256sum /tmp/noise", "noise", 30,
           "collect", "/tmp/noise", "/proc/version", "/tmp/missing"),
        sh("sleep 3.5", "silent"),
        sh("sleep 60 & sleep 60", "slow", 1),
        sh("true", "never"),
    )  # fmt: skip
    driver = LibvirtDriver(home)
    heard = hear_out(driver, request)
    driver.close()
    return heard


def test_a_plan_runs_and_all_it_says_comes_home(said: Said) -> None:
    records = said.records
    assert (gather(records, "out", "talk"), gather(records, "err", "talk")) == (b"hi", b"odd\n")
    digest = gather(records, "out", "noise").split()[0].decode()
    assert hashlib.sha256(gather(records, "file", "/tmp/noise")).hexdigest() == digest
    assert gather(records, "file", "/proc/version").startswith(b"Linux version 6.")
    assert b"cannot send /tmp/missing" in gather(records, "err", "noise")
    ended = exits(records)
    assert (ended["talk"]["status"], ended["talk"]["timed_out"]) == (0, False)
    assert (ended["slow"]["signal"], ended["slow"]["timed_out"]) == (signal.SIGKILL, True)
    assert "never" not in ended
    assert json.loads(records[-1].payload)["completed"] is False
    assert records[-1].name == "slow"


def test_the_heart_beats_while_a_step_is_silent(said: Said) -> None:
    marks = [(record.kind, record.name) for record in said.records]
    during = marks[marks.index(("step", "silent")) : marks.index(("exit", "silent"))]
    assert 2 <= [kind for kind, _ in during].count("beat") <= 4


def test_hello_and_host_say_what_measured(said: Said, artifact: Artifact) -> None:
    assert said.hello["release"] == artifact.metadata.release
    assert said.hello["cpus"] == 2
    assert said.hello["mitigations"]
    assert "console=ttyS0" in said.hello["cmdline"]
    assert said.host["accelerator"] == "tcg"
    assert said.host["qemu"][0].isdigit()


def test_a_flood_of_output_does_not_hide_the_deadline(driver: LibvirtDriver, ask: Ask) -> None:
    ended = exits(run(driver, ask(sh("yes", "flood", 1))))
    assert ended["flood"]["timed_out"] is True


def test_a_guest_is_tuned_as_far_as_it_can_be_and_says_how_far(driver: LibvirtDriver, ask: Ask) -> None:
    tuning = Tuning(governor="performance", smt=False, isolcpus="1", irq_affinity="0")
    request = ask(sh("cat /proc/irq/default_smp_affinity"), cmdline=tuning.cmdline())
    heard = hear_out(driver, request)
    state = heard.hello["tuning"]
    assert (state["isolcpus"], state["irq_affinity"], state["smt"]) == ("1", "0", "off")
    # A guest has no frequencies to govern.
    assert untuned(tuning.asked(), state) == ["governor: asked performance, is unknown to its kernel"]
    assert [record.payload.strip() for record in heard.records if record.kind == "out"] == [b"1"]


def test_a_disk_starts_from_the_golden_image_and_leaves_it_alone(
    driver: LibvirtDriver, ask: Ask, home: Path
) -> None:
    golden = home / "golden.raw"
    golden.write_bytes(b"golden" + bytes(1 << 20))
    script = "d=/dev/disk/by-id/virtio-kperflab0; head -c 6 $d; echo changed > $d; sync; head -c 7 $d"
    for _ in range(2):
        records = run(driver, ask(sh(script), disks=(Disk(golden, "raw", "kperflab0"),)))
        assert gather(records, "out", "sh") == b"goldenchanged"
    assert golden.read_bytes().startswith(b"golden\0")


def test_a_panic_is_an_outcome_and_no_deadline_waited_for(driver: LibvirtDriver, ask: Ask) -> None:
    a_day_s = 86_400.0
    asked = ask(sh("echo c > /proc/sysrq-trigger; sleep 30"))
    request = replace(asked, silence_deadline_s=a_day_s)
    # Nothing is waited for before it: a panic overtakes what the guest's agent had no CPU yet to send.
    panics = pytest.raises(GuestPanicked, match="sysrq triggered crash")
    with driver.boot(request) as session, panics as caught:
        list(session.records(a_day_s))
    assert "sysrq_handle_crash" in caught.value.detail
    assert "Kernel panic" in request.console.read_text()


def test_a_kernel_without_its_user_space_is_a_failed_boot(driver: LibvirtDriver, ask: Ask) -> None:
    with pytest.raises(BootFailed, match="Attempted to kill init"):
        run(driver, ask(sh("true"), cmdline="rdinit=/bin/false"))


def test_another_kernel_than_asked_for_is_refused(driver: LibvirtDriver, ask: Ask) -> None:
    with pytest.raises(WrongKernel, match=r"6\.6\.6-other"):
        run(driver, ask(sh("true"), release="6.6.6-other"))


def test_a_guest_that_does_not_end_shows_where_its_kernel_is(driver: LibvirtDriver, ask: Ask) -> None:
    with driver.boot(ask(sh("sleep 60", deadline_s=90))) as session:
        records = session.records(2)
        with pytest.raises(GuestHung, match='within 2 s; it was in step "sh"') as caught:
            list(records)
    assert "NMI received for unknown reason" in caught.value.detail
    assert "Call Trace:" in caught.value.detail


def test_a_guest_that_stands_still_is_silent(driver: LibvirtDriver, ask: Ask) -> None:
    request = ask(sh("sleep 60", deadline_s=90), silence_deadline_s=2.5)
    with driver.boot(request) as session:
        records = session.records(60)
        next(records)
        (name,) = driver.hypervisor.domains(driver.traces.prefix)
        driver.hypervisor.connection.lookupByName(name).suspend()
        with pytest.raises(GuestSilent, match=r"for 2\.5 s in step"):
            list(records)


def test_a_guest_destroyed_by_others_is_lost_not_judged(driver: LibvirtDriver, ask: Ask) -> None:
    with driver.boot(ask(sh("sleep 60"))) as session:
        records = session.records(60)
        next(records)
        (name,) = driver.hypervisor.domains(driver.traces.prefix)
        driver.hypervisor.connection.lookupByName(name).destroy()
        with pytest.raises(TargetLost, match="from outside"):
            list(records)


def test_a_guest_whose_qemu_is_killed_may_have_done_it_itself(driver: LibvirtDriver, ask: Ask) -> None:
    with driver.boot(ask(sh("sleep 60"))) as session:
        records = session.records(60)
        next(records)
        (name,) = driver.hypervisor.domains(driver.traces.prefix)
        (qemu,) = guests(name)
        os.kill(qemu, signal.SIGKILL)
        with pytest.raises(TargetVanished, match="turned off or crashed"):
            list(records)


def test_a_libvirtd_that_is_killed_costs_no_boot_and_leaves_no_guest(
    driver: LibvirtDriver, ask: Ask, libvirtd: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A guest's output comes over its own sockets; nothing is booted beside it until libvirt is back and has ended it."""
    monkeypatch.setattr("workers.drivers.libvirt.LEAVE_DEADLINE_S", 1.0)
    with driver.boot(ask(sh("sleep 2; echo said"))) as session:
        records = session.records(60)
        first = next(records)
        kill_libvirtd()
        assert exits([first, *records])["sh"]["status"] == 0
    with pytest.raises(TargetLost, match="still runs"), driver.boot(ask(sh("true"))):
        pass
    monkeypatch.undo()
    libvirtd()
    wait_until(lambda: driver.hypervisor.domains(driver.traces.prefix) == [])
    assert exits(run(driver, ask(sh("true"))))["sh"]["status"] == 0


@pytest.fixture
def libvirtd() -> Iterator[Callable[[], None]]:
    """Starts this machine's libvirtd again, and does so in any case when the test is over."""
    yield start_libvirtd
    start_libvirtd()


def kill_libvirtd() -> None:
    subprocess.run(["pkill", "-KILL", "-x", "libvirtd"], check=True)


def test_a_guest_that_resets_is_not_started_again(driver: LibvirtDriver, ask: Ask) -> None:
    reset = ask(sh("sleep 1; echo b > /proc/sysrq-trigger; sleep 60"))
    expected = pytest.raises(GuestPanicked, match="reset or switched itself off in step")
    with driver.boot(reset) as session, expected:
        list(session.records(60))
    driver.close()
    assert driver.hypervisor.domains(driver.traces.prefix) == []


def test_whatever_the_caller_does_the_guest_is_gone(driver: LibvirtDriver, ask: Ask) -> None:
    with pytest.raises(ZeroDivisionError), driver.boot(ask(sh("sleep 60"))):
        raise ZeroDivisionError
    driver.close()
    assert driver.hypervisor.domains(driver.traces.prefix) == []


KILLED = textwrap.dedent("""
    import pickle, sys, time
    from pathlib import Path
    from workers.drivers.libvirt import LibvirtDriver
    request = pickle.loads(sys.stdin.buffer.read())
    with LibvirtDriver(Path(sys.argv[1])).boot(request):
        print("booted", flush=True)
        time.sleep(60)
""")


def test_what_a_killed_worker_left_is_swept_and_a_living_ones_guest_is_not(
    driver: LibvirtDriver, ask: Ask, home: Path
) -> None:
    golden = home / "golden.raw"
    golden.write_bytes(bytes(1 << 20))
    request = ask(sh("sleep 60"), disks=(Disk(golden, "raw", "kperflab0"),))
    worker = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
        env=os.environ,
    )
    assert worker.stdin
    assert worker.stdout
    worker.stdin.write(pickle.dumps(request))
    worker.stdin.close()
    assert worker.stdout.readline() == b"booted\n"
    assert driver.sweep() == []
    (name,) = driver.hypervisor.domains(driver.traces.prefix)
    boot = BootId.read(name)
    assert (boot.pid, driver.traces.boots()) == (worker.pid, {boot})
    worker.kill()
    worker.wait()
    wait_until(lambda: driver.hypervisor.domains(driver.traces.prefix) == [])
    assert driver.sweep() == [str(boot)]
    assert driver.traces.boots() == set()


def test_a_guest_whose_worker_is_gone_is_swept(driver: LibvirtDriver, ask: Ask, home: Path) -> None:
    request = ask(sh("sleep 60"))
    dead = BootId(pid=(1 << 22) + 1, started=1, token="00000000")  # beyond the largest pid there can be
    name = f"{driver.traces.prefix}{dead}"
    with listen(home / "console") as console, listen(home / "records") as records:
        wiring = Wiring(name, Path(console.getsockname()), Path(records.getsockname()), ())
        driver.hypervisor.connection.createXML(domain_xml(request, wiring), 0)
        assert driver.sweep() == [name]
    for path in (home / "console", home / "records"):
        path.unlink()


def wait_until(happened: Callable[[], bool], deadline_s: float = 10) -> None:
    end = time.monotonic() + deadline_s
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.05)
