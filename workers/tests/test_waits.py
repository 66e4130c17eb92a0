# SPDX-License-Identifier: GPL-2.0-or-later
"""Begins and ends of waits in perf.data → who waited where, for how long.

golden/profiled is what one boot of Debian's 6.1 with four threads of showgids sent: its recordings of lock and scheduler
tracepoints with the System.map around their addresses. The sums were made of `perf script`'s text, pairing line by line.
"""

from __future__ import annotations

import lzma
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from lab.profiles.analysis.frame_tree import Stack, stacks_of
from workers.collect.perfdata import ExpectedKernel, PerfProfile, read_waits
from workers.collect.perfdata_tracing import read_tracepoints
from workers.errors import ProfileUnreadable
from workers.tests import perfwriter as perf
from workers.tests.test_perfdata import ENTRY, KERNEL_TEXT, MAP, OPEN, READ
from workloads.passes import Kind

GOLDEN = Path(__file__).parent / "golden" / "profiled"
WINDOWS = {
    "lock": ((29.011950986, 31.139600921), (31.20376714, 32.331674396)),
    "off-cpu": ((40.672977566, 43.132157663), (43.192217797, 45.117420352)),
}
SLOW = 0xFFFFFFFF81003810
COMMON = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
FORMATS = [
    f"name: contention_begin\nID: 110\nformat:\n{COMMON}"
    "\tfield:void * lock_addr;\toffset:8;\tsize:8;\tsigned:0;\n\tfield:unsigned int flags;\toffset:16;\tsize:4;\tsigned:0;\n",
    f"name: contention_end\nID: 109\nformat:\n{COMMON}\tfield:void * lock_addr;\toffset:8;\tsize:8;\tsigned:0;\n",
    f"name: sched_switch\nID: 100\nformat:\n{COMMON}"
    "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:1;\n\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n"
    "\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n",
]
CHAIN = [perf.IN_KERNEL, SLOW, READ, OPEN, ENTRY]
LOCK, OTHER = 0xFFFF888000001000, 0xFFFF888000002000
A = [perf.comm(7, "a", 0), perf.comm(8, "b", 0)]

Reader = Callable[..., PerfProfile]


@pytest.fixture
def read(tmp_path: Path) -> Reader:
    """Reads a file made of these records, as waits of a kind."""
    (tmp_path / "System.map").write_text(
        MAP.replace(
            f"{0xFFFFFFFF81004000:016x}",
            f"{SLOW - 16:016x} t rwsem_down_read_slowpath\n{0xFFFFFFFF81004000:016x}",
        )
    )

    def reader(
        records: Sequence[bytes],
        kind: Kind = "lock",
        windows: Sequence[tuple[float, float]] = (),
        formats: Sequence[str] = FORMATS,
    ) -> PerfProfile:
        data = perf.perf_data(
            [KERNEL_TEXT, *A, *records],
            attrs=((perf.attr(perf.TRACED), (1,)),),
            features={1: perf.tracing(formats)},
        )
        (tmp_path / "perf.data").write_bytes(data)
        return read_waits(tmp_path / "perf.data", ExpectedKernel(tmp_path / "System.map"), kind, windows)

    return reader


def begin(tid: int, time: int, lock: int = LOCK, chain: Sequence[int] = CHAIN) -> bytes:
    return perf.event(tid, time, chain, struct.pack("<HxxiQI", 110, tid, lock, 2))


def end(tid: int, time: int, lock: int = LOCK) -> bytes:
    return perf.event(tid, time, CHAIN, struct.pack("<HxxiQi", 109, tid, lock, 0))


def switch(time: int, left: int, state: int, entered: int) -> bytes:
    raw = struct.pack("<Hxxi16siiq16si", 100, left, b"x", left, 0, state, b"y", entered)
    return perf.event(left, time, [perf.IN_KERNEL, OPEN, ENTRY], raw)


def stacks(profile: PerfProfile) -> dict[Stack, int]:
    return dict(stacks_of(profile.tree))


def test_a_wait_stands_under_the_caller_of_the_function_that_locks(read: Reader) -> None:
    profile = read([begin(7, 100), end(7, 350)])
    assert stacks(profile) == {("a", "entry_SYSCALL_64", "vfs_open", "down_read"): 250}
    assert (profile.waits, profile.samples, profile.unended, profile.unbegun) == (1, 250, 0, 0)


def test_waits_are_paired_by_thread_and_lock(read: Reader) -> None:
    profile = read(
        [begin(7, 100), begin(8, 110), begin(7, 120, OTHER), end(8, 200), end(7, 130, OTHER), end(7, 400)]
    )
    assert {stack[0]: ns for stack, ns in stacks(profile).items()} == {"a": 300 + 10, "b": 90}
    assert profile.waits == 3


def test_a_mutex_that_spins_and_then_sleeps_is_one_wait_from_its_first_begin(read: Reader) -> None:
    profile = read([begin(7, 100), begin(7, 150), end(7, 400), end(7, 500)])
    assert (profile.samples, profile.waits, profile.unbegun) == (300, 1, 1)


def test_events_of_two_cpus_are_taken_in_the_order_of_time(read: Reader) -> None:
    assert read([end(7, 350), begin(7, 100)]).samples == 250


def test_no_wait_reaches_from_one_timed_interval_into_the_next(read: Reader) -> None:
    events = [begin(7, 100), end(7, 2_100), begin(7, 2_200), end(7, 2_500), begin(7, 2_900)]
    profile = read(events, windows=((0, 1e-6), (2e-6, 3e-6)))
    assert (profile.samples, profile.waits, profile.unended, profile.unbegun) == (300, 1, 2, 1)


def test_a_wait_across_lost_events_is_not_guessed(read: Reader) -> None:
    profile = read([begin(7, 100), perf.lost(3, 200), end(7, 300), begin(7, 400), end(7, 450)])
    assert (profile.samples, profile.waits, profile.lost, profile.unended, profile.unbegun) == (
        50,
        1,
        3,
        1,
        1,
    )


def test_no_contention_at_all_is_an_answer(read: Reader) -> None:
    profile = read([])
    assert (profile.samples, profile.waits, len(profile.tree)) == (0, 0, 1)


def test_a_thread_is_off_its_cpu_from_when_it_sleeps_to_when_it_runs_again(read: Reader) -> None:
    profile = read(
        [switch(100, 7, 1, 8), switch(300, 8, 0, 7), switch(900, 7, 2, 0), switch(950, 0, 0, 8)], "off-cpu"
    )
    # 8 was put off while it wanted to run: that is no wait; 7 still sleeps at the end.
    assert stacks(profile) == {("a", "entry_SYSCALL_64", "vfs_open"): 200}
    assert (profile.waits, profile.unended, profile.unbegun) == (1, 1, 0)


def test_the_dead_and_the_preempted_do_not_wait(read: Reader) -> None:
    profile = read([switch(100, 7, 0x10, 8), switch(200, 8, 0x100, 7), switch(300, 7, 0, 8)], "off-cpu")
    assert profile.waits == 0


@pytest.mark.parametrize("formats", [[], FORMATS[2:], ["name: contention_begin\n"]])
def test_a_file_that_does_not_describe_its_tracepoints_is_unreadable(
    read: Reader, formats: list[str]
) -> None:
    with pytest.raises(ProfileUnreadable, match="not describe"):
        read([begin(7, 100), end(7, 350)], formats=formats)


def test_fields_beyond_a_sample_are_refused(read: Reader) -> None:
    far = [text.replace("offset:8", "offset:800") for text in FORMATS]
    with pytest.raises(ProfileUnreadable, match="shorter than their fields"):
        read([begin(7, 100)], formats=far)
    with pytest.raises(ProfileUnreadable, match="has no number lock_addr"):
        read([begin(7, 100)], formats=[text.replace("lock_addr", "other") for text in FORMATS])


def test_intervals_that_no_event_lies_in_are_of_another_clock(read: Reader) -> None:
    with pytest.raises(ProfileUnreadable, match="none of the 2 events"):
        read([begin(7, 100), end(7, 350)], windows=((5, 6),))


def test_waits_longer_than_any_guest_runs_are_refused(read: Reader) -> None:
    with pytest.raises(ProfileUnreadable, match="longer than any guest"):
        read([begin(7, 0), end(7, 1 << 60)])


@pytest.mark.parametrize(
    ("kind", "waits", "ns", "unended"), [("lock", 4, 54_458_928, 0), ("off-cpu", 834, 37_214_770_407, 19)]
)
def test_a_real_guests_waits_are_those_of_perfs_own_text(
    tmp_path: Path, kind: Kind, waits: int, ns: int, unended: int
) -> None:
    (tmp_path / "perf.data").write_bytes(lzma.decompress((GOLDEN / f"{kind}.data.xz").read_bytes()))
    kernel = ExpectedKernel(GOLDEN / "System.map", "6.1.192-ke3b61b3e121b")
    profile = read_waits(tmp_path / "perf.data", kernel, kind, WINDOWS[kind])
    assert (profile.waits, profile.samples, profile.unended, profile.lost) == (waits, ns, unended, 0)


def test_a_real_guest_waited_in_kernfs_for_its_mutex(tmp_path: Path) -> None:
    (tmp_path / "perf.data").write_bytes(lzma.decompress((GOLDEN / "lock.data.xz").read_bytes()))
    profile = read_waits(
        tmp_path / "perf.data", ExpectedKernel(GOLDEN / "System.map"), "lock", WINDOWS["lock"]
    )
    assert {stack[-2:] for stack in stacks(profile)} == {
        ("kernfs_fop_open", "__mutex_lock.constprop.0"),
        ("kernfs_unlink_open_file", "__mutex_lock.constprop.0"),
    }


@pytest.mark.parametrize("cut", range(0, 4600, 97))
def test_a_description_that_is_cut_off_anywhere_is_unreadable_or_whole(tmp_path: Path, cut: int) -> None:
    section = perf.tracing(FORMATS * 6)[:cut]
    with suppress(ProfileUnreadable):
        assert set(read_tracepoints(section)) <= {"contention_begin", "contention_end", "sched_switch"}
