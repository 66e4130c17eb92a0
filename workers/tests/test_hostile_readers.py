# SPDX-License-Identifier: GPL-2.0-or-later
"""Files that guests and strangers' builds make to hurt their readers: read in bounds, or refused in one line."""

from __future__ import annotations

import dataclasses
import os
import shutil
import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from bench.fuzz.guests import MemoryFile
from kernels.artifacts.elf import build_id_in, code_hash
from kernels.artifacts.kernel_files import kernel_facts
from kernels.errors import ArtifactCorrupt, KernelsError, ReadingStopped
from lab.profiles.analysis.frame_tree import Stack, stacks_of
from workers.collect import fromguest, kernelsymbols
from workers.collect.fromguest import Sent, read_guest
from workers.collect.kernelsymbols import KernelSymbols
from workers.collect.perfdata import ExpectedKernel, PerfProfile, read_perf_data
from workers.collect.transcript import recording_name
from workers.errors import ProfileUnreadable
from workers.tests import perfwriter as perf
from workers.tests.test_perfdata import CHAIN, ENTRY, KERNEL_TEXT, MAP, NAMES, OPEN, READ
from workers.tests.test_profiled_run import WHOLE, artifact
from workloads.catalog import load_catalog
from workloads.guest.records import Record
from workloads.readings import files_of

pytestmark = pytest.mark.hostile

LATE, TOP = 1 << 63, (1 << 64) - 5000
COMMAND = perf.comm(7, "a", 0)


def profile(*samples: bytes) -> PerfProfile:
    data = perf.perf_data([KERNEL_TEXT, COMMAND, *samples])
    return read_perf_data(
        MemoryFile(data, "perf.data"), ExpectedKernel(MemoryFile(MAP.encode(), "System.map"))
    )


def stacks(profiled: PerfProfile) -> dict[Stack, int]:
    return dict(stacks_of(profiled.tree))


# perf.data


@pytest.mark.parametrize("garbage", [LATE, LATE + 0x1234, 1 << 62, 1 << 57, TOP, READ], ids=hex)
def test_a_garbage_user_address_costs_its_frame_alone(garbage: int) -> None:
    mixed = [*CHAIN, perf.IN_USER, garbage]
    profiled = profile(*(perf.sample(7, time, CHAIN) for time in range(5)), perf.sample(7, 9, mixed))
    assert stacks(profiled) == {("a", *NAMES): 5, ("a", "[unknown]", *NAMES): 1}
    assert profiled.garbled == 1


@pytest.mark.parametrize("garbage", [LATE, TOP, 1 << 60], ids=hex)
def test_a_profile_with_nothing_but_a_garbage_address_is_still_one(garbage: int) -> None:
    profiled = profile(perf.sample(7, 1, [perf.IN_USER, garbage], ip=0x400010))
    assert stacks(profiled) == {("a", "[unknown]"): 1}
    assert profiled.garbled == 1


@pytest.mark.parametrize("garbage", [0, 0x10, 0x400010, (1 << 63) - 1], ids=hex)
def test_a_user_address_that_is_said_to_be_the_kernels_is_no_function(garbage: int) -> None:
    profiled = profile(perf.sample(7, 1, [*CHAIN, garbage]), perf.sample(7, 2, CHAIN))
    assert stacks(profiled) == {("a", "[unknown]", *NAMES): 1, ("a", *NAMES): 1}
    assert profiled.garbled == 1


def test_every_marker_that_a_chain_may_hold_is_passed_over() -> None:
    markers = [(1 << 64) - number for number in (32, 128, 512, 2048, 2176, 2560, 4095)]
    for marker in markers:
        assert profile(perf.sample(7, 1, [marker, 0x400010], ip=0x400010)).samples == 1


EVENT = perf.IDENTIFIER | perf.IP | perf.TID | perf.TIME


def sampled(event: int, address: int, time: int) -> bytes:
    return perf.record(9, 1, struct.pack("<QQIIQ", event, address, 7, 7, time))


def with_config(attribute: bytes, kind: int, config: int) -> bytes:
    return struct.pack("<IIQ", kind, 128, config) + attribute[16:]


def test_samples_of_a_second_event_are_left_out_and_counted() -> None:
    attrs = [(perf.attr(EVENT), (1, 2)), (with_config(perf.attr(EVENT), 0, 1), (3, 4))]
    profiled = profile_of([sampled(1, OPEN, 1), sampled(2, OPEN, 2), sampled(3, READ, 3)], attrs)
    assert stacks(profiled) == {("[unknown]", "vfs_open"): 2}
    assert profiled.others == 1


def test_a_dummy_event_is_no_second_one() -> None:
    attrs = [(with_config(perf.attr(EVENT), 1, 9), (1,)), (perf.attr(EVENT), (2,))]
    profiled = profile_of([sampled(2, OPEN, 1)], attrs)
    assert (stacks(profiled), profiled.others) == ({("[unknown]", "vfs_open"): 1}, 0)


def test_samples_of_no_event_of_the_file_are_refused() -> None:
    attrs = [(perf.attr(EVENT), (1,)), (perf.attr(EVENT), (2,))]
    with pytest.raises(ProfileUnreadable, match="samples of events that it does not describe"):
        profile_of([sampled(9, OPEN, 1)], attrs)


def test_events_that_nothing_tells_apart_are_refused() -> None:
    attrs = [(perf.attr(perf.PLAIN), (1,)), (with_config(perf.attr(perf.PLAIN), 0, 1), (2,))]
    with pytest.raises(ProfileUnreadable, match="several events, and nothing tells them apart"):
        profile_of([perf.sample(7, 1, CHAIN)], attrs)


def profile_of(records: Sequence[bytes], attrs: Sequence[tuple[bytes, Sequence[int]]]) -> PerfProfile:
    data = perf.perf_data(records, attrs=attrs)
    return read_perf_data(
        MemoryFile(data, "perf.data"), ExpectedKernel(MemoryFile(MAP.encode(), "System.map"))
    )


@pytest.mark.process
def test_a_profile_that_takes_too_much_memory_is_the_guests_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fromguest, "LIMITS", dataclasses.replace(fromguest.LIMITS, memory=24 << 20))
    body = b"".join(perf.sample(number, number, [*CHAIN, 0x400000 + number]) for number in range(60_000))
    with pytest.raises(ReadingStopped, match=r"takes more than 24 MiB of memory|ended by signal") as caught:
        boot(tmp_path, perf.perf_data([KERNEL_TEXT, body]))
    assert caught.value.blame == "kernel"


@pytest.mark.process
def test_a_profile_that_takes_too_long_is_the_guests_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fromguest, "LIMITS", dataclasses.replace(fromguest.LIMITS, seconds=1))
    body = b"".join(perf.sample(number, number, [*CHAIN, 0x400000 + number]) for number in range(500_000))
    with pytest.raises(ReadingStopped, match=r"took [01] of 1 s of CPU time") as caught:
        boot(tmp_path, perf.perf_data([KERNEL_TEXT, body]))
    assert caught.value.blame == "kernel"


def boot(tmp_path: Path, recording: bytes) -> fromguest.FromGuest:
    """One profiled boot that sent a recording and nothing else."""
    run = tmp_path / "run"
    run.mkdir()
    (run / "records.bin").write_bytes(b"")
    (run / recording_name("cpu")).write_bytes(recording)
    return read_guest(Sent(run, purpose="profiled"), artifact(tmp_path / "artifact"), tmp_path)


# What is in the place of a file


def _folder(path: Path) -> None:
    path.mkdir()


def _link(path: Path) -> None:
    path.symlink_to("/etc/passwd")


def _loop(path: Path) -> None:
    path.symlink_to(path)


@pytest.mark.parametrize("make", [_folder, _link, _loop, os.mkfifo])
@pytest.mark.parametrize("name", ["records.bin", "System.map", "vmlinux"])
def test_what_is_in_the_place_of_a_file_is_a_fault_of_the_lab_and_not_read(
    tmp_path: Path, name: str, make: Callable[[Path], None]
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "records.bin").write_bytes(b"")
    (run / "perf.data").write_bytes(WHOLE)
    kernel = artifact(tmp_path / "artifact")
    place = run / name if name == "records.bin" else kernel.directory / name
    place.unlink()
    make(place)
    with pytest.raises(KernelsError) as caught:
        read_guest(Sent(run, purpose="profiled"), kernel, tmp_path)
    assert (caught.value.blame, caught.value.retry) == ("lab", True)
    assert name in str(caught.value) or "no longer in the store" in str(caught.value)


# System.map


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"\n" * ((1 << 20) + 1), "more than 1048576 lines"),
        (b"\n" * 1000, "names no function"),
        (b"", "names no function"),
        (b"\xff" * 100_000, "names no function"),
        (b"zzzzzzzz81000000 T f\n" * 10, "names no function"),
        (b"ffffffff81000000 D data\n", "names no function"),
    ],
)
def test_a_system_map_that_is_none_is_refused(text: bytes, says: str) -> None:
    with pytest.raises(ProfileUnreadable, match=says):
        KernelSymbols(MemoryFile(text, "System.map"))


def test_a_system_map_larger_than_any_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "System.map"
    with path.open("wb") as file:
        file.truncate(kernelsymbols._MOST_BYTES + 1)
    with pytest.raises(ProfileUnreadable, match="larger than 64 MiB"):
        KernelSymbols(path)


def test_an_address_of_letters_is_no_address() -> None:
    text = b"ffffffff81000000 T f\nnot-hexadecimal! T g\nzzzzzzzzzzzzzzzz T _end\n"
    assert KernelSymbols(MemoryFile(text, "System.map")).address("_end") is None


# ELF


def elf(
    sections: int, *, names: bytes = b"\0", size: int = 0, fill: Mapping[int, int] | None = None
) -> bytes:
    """A file of so many equal sections, the first of which holds the names."""
    at = 64 + len(names)
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 1, 62, 1, 0, 0, at, 0, 64, 0, 0, 64, sections, 0
    )
    first = struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, 64, len(names), 0, 0, 0, 0)
    other = struct.pack("<IIQQQQIIQQ", 0, 1, 2, 0, 0, size, 0, 0, 0, 0)
    data = bytearray(header + names + first + other * (sections - 1))
    for place, value in (fill or {}).items():
        struct.pack_into("<Q", data, place, value)
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "has no 64-bit ELF header"),
        (b"\x7fELF\x01\x01\x01" + bytes(60), "has no 64-bit ELF header"),
        (b"\x7fELF\x02\x01\x01", "not a readable ELF file"),
        (elf(60_000, names=b"A" * 2_000_000), "a section's name has no end"),
        (elf(50, size=1_000), "overlap"),
        (elf(5, size=1 << 62), "a section lies outside it"),
        (elf(5)[:200], "it has 5 sections"),
        (elf(5, fill={40: 1 << 63}), "its section headers lie outside it"),
        (elf(5, fill={40: (1 << 64) - 1}), "its section headers lie outside it"),
    ],
    ids=range(9),
)
def test_an_elf_file_that_is_none_is_refused(data: bytes, says: str) -> None:
    with pytest.raises(ArtifactCorrupt, match=says):
        code_hash(MemoryFile(data, "vmlinux"), [], "6.1")


def test_sixty_thousand_sections_are_read_once_each() -> None:
    assert len(code_hash(MemoryFile(elf(60_000), "vmlinux"), [], "6.1")) == 64


def test_a_built_kernel_that_is_none_is_the_doing_of_its_tree(tmp_path: Path) -> None:
    (tmp_path / "vmlinux").write_bytes(elf(3))
    with pytest.raises(ReadingStopped, match="did not make a kernel: vmlinux has no Linux banner") as caught:
        kernel_facts(tmp_path / "vmlinux", tmp_path / "vmlinux", [])
    assert (caught.value.blame, caught.value.retry) == ("kernel", False)


def test_a_build_of_more_modules_than_any_workload_has_is_refused(tmp_path: Path) -> None:
    shutil.copy("/usr/bin/true", tmp_path / "vmlinux")
    with pytest.raises(ReadingStopped, match="has 30 modules"):
        kernel_facts(
            tmp_path / "vmlinux", tmp_path / "vmlinux", [tmp_path / f"{number}.ko" for number in range(30)]
        )


@pytest.mark.parametrize(
    "notes",
    [b"", b"\xff" * 1000, bytes(1 << 20), struct.pack("<III4s", 4, 1 << 31, 3, b"GNU\0") + bytes(1 << 16)],
    ids=range(4),
)
def test_notes_give_a_build_id_of_some_bytes_at_most(notes: bytes) -> None:
    assert len(build_id_in(notes)) <= 64


# Records


def test_sixteen_thousand_files_are_put_together_in_one_pass() -> None:
    looked = 0

    class Watched(Record):
        @property
        def kind(self) -> str:
            nonlocal looked
            looked += 1
            return "file"

    records = [Watched.__new__(Watched) for _ in range(16_000)]
    for number, record in enumerate(records):
        object.__setattr__(record, "name", f"/f{number}")
        object.__setattr__(record, "payload", b"x")
    assert len(files_of(records)) == 16_000
    assert looked == 16_000


def test_every_workload_refuses_iterations_beyond_its_plan() -> None:
    for workload in load_catalog().values():
        step = next(step.name for step in workload.definition.steps if step.kind == "measure")
        lines = b'{"iteration":0,"warmup":false,"values":{}}\n' * 4
        with pytest.raises(Exception, match="printed 4 iterations, its plan has 3"):
            workload.read([Record(1, "out", step, lines)], most=3)


def test_a_walk_over_an_entry_stays_as_it_was() -> None:
    assert stacks(profile(perf.sample(7, 1, [perf.IN_KERNEL, ENTRY])))
