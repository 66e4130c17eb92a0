# SPDX-License-Identifier: GPL-2.0-or-later
"""Sessions with sockets in place of a guest."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from lab.runs.claim import MOST_ATTEMPTS
from workers.drivers import streams as streams_module
from workers.drivers.base import BootRequest, Machine
from workers.drivers.guest_session import Ending, GuestSession
from workers.drivers.streams import LocalStreams, Streams
from workers.errors import (
    BootFailed,
    GuestEndless,
    GuestHung,
    GuestPanicked,
    GuestSilent,
    TargetLost,
    TargetVanished,
    WrongKernel,
)
from workers.tests.libvirtd import repeated
from workloads.errors import RecordCorrupt
from workloads.guest.records import Record, encode_record

# A test that waited for it would be ended by pytest-timeout.
A_DAY_S = 86_400.0
HELLO = json.dumps({"release": "6.1.192-kabc", "cpus": 2}).encode()
OOPS = (
    b"[    3.1] WARNING: CPU: 0 PID: 1 at fs/inode.c:1 iput+0x1/0x2\n"
    b"[    4.2] BUG: kernel NULL pointer dereference, address: 0000000000000008\n"
    b"[    4.2] RIP: 0010:find_inode_fast+0x1f/0x60\n"
    b"[    4.3] Kernel panic - not syncing: Fatal exception\n"
)


@dataclass
class Remote:
    """A machine's switches: what was pressed, and what it answers."""

    ending: Ending = "itself"
    interrupts: int = 0

    def how_it_ended(self) -> Ending:
        return self.ending

    def interrupt(self) -> None:
        self.interrupts += 1


@dataclass
class Guest:
    """The guest's ends of the two streams."""

    console: socket.socket
    records: socket.socket
    session: GuestSession
    streams: Streams
    remote: Remote
    request: BootRequest
    seq: int = field(default=0)

    def says(self, kind: str, name: str = "-", payload: bytes = b"") -> None:
        self.seq += 1
        self.records.sendall(encode_record(Record(self.seq, kind, name, payload)))

    def dies(self) -> None:
        self.console.close()
        self.records.close()

    def greets(self) -> None:
        self.says("hello", "-", HELLO)
        self.session.greet()


@pytest.fixture
def guest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Guest]:
    monkeypatch.setattr(streams_module, "PANIC_GRACE_S", 0.05)
    monkeypatch.setattr("workers.drivers.guest_session.STACKS_S", 0.05)
    request = BootRequest(
        name="one",
        kernel=tmp_path / "vmlinux",
        initrd=tmp_path / "initrd",
        cmdline="",
        machine=Machine(2, 512, "tcg"),
        disks=(),
        release="6.1.192-kabc",
        directory=tmp_path,
        boot_deadline_s=0.3,
        silence_deadline_s=0.3,
    )
    console, our_console = socket.socketpair()
    records, our_records = socket.socketpair()
    for ours in (our_console, our_records):
        ours.setblocking(False)
    streams = LocalStreams(
        our_console, our_records, request.console.open("wb"), request.raw_records.open("wb")
    )
    remote = Remote()
    session = GuestSession(request, streams, remote, {"machine": "q35"})
    yield Guest(console, records, session, streams, remote, request)
    console.close()
    records.close()
    streams.close()


def test_a_plan_is_heard_from_hello_to_bye(guest: Guest) -> None:
    guest.greets()
    guest.says("step", "walk")
    guest.says("beat")
    guest.says("bye")
    assert [record.kind for record in guest.session.records(5)] == ["step", "beat", "bye"]
    assert guest.session.hello["cpus"] == 2
    assert {"load_before", "load_after", "steal_share", "machine", "accelerator"} <= guest.session.host.keys()


def test_both_streams_are_kept_as_they_came(guest: Guest) -> None:
    guest.console.sendall(b"[    0.0] Linux version\n")
    guest.greets()
    guest.says("bye")
    list(guest.session.records(5))
    guest.streams.drain(0.05)
    guest.streams.close()
    assert guest.request.console.read_bytes() == b"[    0.0] Linux version\n"
    assert guest.request.raw_records.read_bytes().startswith(b"KPL1 1 hello - ")


def test_another_kernel_than_asked_for_is_told_by_its_release(guest: Guest) -> None:
    guest.session._request = replace(guest.request, release="6.1.192-kother")
    with pytest.raises(WrongKernel, match=r'"6\.1\.192-kabc", not "6\.1\.192-kother"'):
        guest.greets()


def test_no_hello_in_time_is_a_failed_boot_that_shows_the_console(guest: Guest) -> None:
    guest.console.sendall(b"VFS: Cannot open root device\n")
    with pytest.raises(BootFailed, match=r"within 0\.3 s") as caught:
        guest.session.greet()
    assert caught.value.detail == "VFS: Cannot open root device\n"
    assert guest.remote.interrupts == 1


def test_a_panic_before_hello_is_a_failed_boot(guest: Guest) -> None:
    guest.console.sendall(OOPS)
    with pytest.raises(BootFailed, match="while it booted: BUG: kernel NULL pointer"):
        guest.session.greet()


def test_a_guest_that_resets_while_it_boots_is_a_failed_boot(guest: Guest) -> None:
    guest.dies()
    with pytest.raises(BootFailed, match="while it booted"):
        guest.session.greet()


def test_a_hello_that_makes_no_sense_is_corrupt(guest: Guest) -> None:
    guest.says("hello", "-", b"{}")
    with pytest.raises(RecordCorrupt):
        guest.session.greet()


def test_a_panic_is_reported_under_its_cause_and_no_deadline_waited_for(guest: Guest) -> None:
    guest.greets()
    guest.session._request = replace(guest.request, silence_deadline_s=A_DAY_S)
    guest.says("step", "walk")
    guest.console.sendall(OOPS)
    with pytest.raises(GuestPanicked, match=r"^BUG: kernel NULL pointer dereference") as caught:
        list(guest.session.records(A_DAY_S))
    assert "find_inode_fast+0x1f/0x60" in caught.value.detail


def test_a_panic_line_in_two_pieces_is_seen(guest: Guest) -> None:
    guest.greets()
    guest.console.sendall(b"Kernel panic - not s")
    guest.streams.drain(0.02)
    guest.console.sendall(b"yncing: hung_task\n")
    with pytest.raises(GuestPanicked, match="hung_task"):
        list(guest.session.records(5))


def test_records_that_came_before_a_panic_are_still_handed_over(guest: Guest) -> None:
    guest.greets()
    guest.says("out", "walk", b"1\n")
    guest.console.sendall(OOPS)
    records = guest.session.records(5)
    assert next(records).payload == b"1\n"
    with pytest.raises(GuestPanicked):
        next(records)


def test_a_reset_without_a_word_is_the_kernels_doing_and_names_the_step(guest: Guest) -> None:
    guest.greets()
    guest.says("step", "walk")
    guest.dies()
    with pytest.raises(GuestPanicked, match='reset or switched itself off in step "walk"'):
        list(guest.session.records(5))


def test_a_guest_that_was_destroyed_is_the_labs_loss(guest: Guest) -> None:
    guest.remote.ending = "outside"
    guest.greets()
    guest.dies()
    with pytest.raises(TargetLost, match="ended from outside before its first step"):
        list(guest.session.records(5))


@pytest.mark.hostile
@pytest.mark.parametrize("greets", [True, False])
def test_a_guest_that_crashed_its_qemu_or_whose_qemu_was_killed_spares_its_target(
    guest: Guest, greets: bool
) -> None:
    guest.remote.ending = "unclear"
    if greets:
        guest.greets()
    guest.dies()
    with pytest.raises(TargetVanished, match="turned off or crashed before its first step") as caught:
        list(guest.session.records(5)) if greets else guest.session.greet()
    assert (caught.value.blame, caught.value.retry, caught.value.spares_target) == ("lab", True, True)


def test_a_tests_boot_whose_qemu_crashed_is_repeated_as_often_as_a_workers() -> None:
    crashes = 0

    def boot() -> str:
        nonlocal crashes
        if crashes > 0:
            crashes -= 1
            raise TargetVanished("crashed")
        return "booted"

    crashes = MOST_ATTEMPTS - 1
    assert repeated(boot) == "booted"
    crashes = MOST_ATTEMPTS + 1
    with pytest.raises(TargetVanished):
        repeated(boot)
    assert crashes == 1


def test_missed_heartbeats_are_silence(guest: Guest) -> None:
    guest.greets()
    guest.says("step", "walk")
    with pytest.raises(GuestSilent, match=r'for 0\.3 s in step "walk"'):
        list(guest.session.records(5))
    assert guest.remote.interrupts == 1


def test_a_plan_that_does_not_end_is_a_hang_though_the_heart_beats(guest: Guest) -> None:
    guest.greets()
    guest.says("step", "walk")

    def beat() -> None:
        for _record in guest.session.records(0.5):
            time.sleep(0.05)
            guest.says("beat")

    with pytest.raises(GuestHung, match=r'within 0\.5 s; it was in step "walk"'):
        beat()


def test_a_slow_reader_is_no_silent_guest(guest: Guest) -> None:
    guest.greets()
    guest.says("step", "walk")
    guest.says("bye")
    kinds = []
    for record in guest.session.records(5):
        time.sleep(0.4)  # longer than the silence deadline
        kinds.append(record.kind)
    assert kinds == ["step", "bye"]


def test_a_damaged_record_ends_the_run(guest: Guest) -> None:
    guest.greets()
    guest.records.sendall(b"KPL1 3 out walk 0 00000000\n\n")
    with pytest.raises(RecordCorrupt, match="record 2"):
        list(guest.session.records(5))


def test_a_guest_that_floods_the_console_does_not_fill_the_disk(
    guest: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams_module, "CONSOLE_LIMIT", 100)
    guest.greets()
    for _ in range(10):
        guest.console.sendall(b"x" * 99 + b"\n")
        guest.streams.drain(0.01)
    guest.streams.close()
    assert guest.request.console.stat().st_size <= 200
    assert len(guest.streams.tail()) == 1000


def test_a_guest_that_floods_us_with_records_is_ended(guest: Guest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams_module, "RECORDS_LIMIT", 1000)
    guest.greets()
    guest.says("out", "walk", b"x" * 2000)
    with pytest.raises(GuestEndless, match="records"):
        list(guest.session.records(5))


def test_a_guest_that_counts_instructions_may_be_silent_and_we_beat_for_it(
    guest: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.drivers.guest_session.OWN_BEAT_S", 0.2)
    guest.session._request = replace(guest.request, machine=Machine(1, 512, "tcg", "instructions"))
    guest.greets()
    records = guest.session.records(5)
    assert [next(records).seq for _ in range(3)] == [0, 0, 0]  # longer than the silence deadline
    guest.says("step", "walk")
    guest.says("bye")
    assert [record.kind for record in records] == ["step", "bye"]


def test_a_guest_that_counts_instructions_forever_has_hung(guest: Guest) -> None:
    guest.session._request = replace(guest.request, machine=Machine(1, 512, "tcg", "instructions"))
    guest.greets()
    with pytest.raises(GuestHung, match=r"within 0\.5 s"):
        list(guest.session.records(0.5))
