# SPDX-License-Identifier: GPL-2.0-or-later
"""Reading perf.data: as `perf script` does, except as noted here.

golden/perfdata is of one of our own guests (6.1.192, running showgids): its perf.data, the lines of its kernel's
System.map around the addresses in it, and what `perf script` and fold_script make of them.
"""

from __future__ import annotations

import lzma
import re
import struct
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from lab.profiles.analysis.frame_tree import Stack, stacks_of
from lab.tests.folded import read_folded
from workers.collect.perfdata import ExpectedKernel, PerfProfile, read_perf_data
from workers.errors import ProfileUnreadable
from workers.tests import perfwriter as perf
from workers.tests.perfscript import fold_perf_data

GOLDEN = Path(__file__).parent / "golden" / "perfdata"
TEXT = 0xFFFFFFFF81000000
MAP = f"""\
{TEXT:016x} T _stext
{TEXT:016x} T _text
{TEXT + 0x1000:016x} T entry_SYSCALL_64
{TEXT + 0x2000:016x} T vfs_open
{TEXT + 0x3000:016x} t down_read
{TEXT + 0x4000:016x} T do_group_exit
{TEXT + 0x4100:016x} T next_function
{TEXT + 0x5000:016x} T do_exit
{TEXT + 0x6000:016x} T asm_sysvec_apic_timer_interrupt
{TEXT + 0x7000:016x} T __memcpy
{TEXT + 0x7000:016x} W memcpy
{TEXT + 0x7800:016x} T __x86_indirect_thunk_rax
{TEXT + 0x8000:016x} T _etext
{TEXT + 0x9000:016x} D some_data
{TEXT + 0xA000:016x} B _end
"""
ENTRY, OPEN, READ, GROUP_EXIT, NEXT, EXIT, INTERRUPT = (
    TEXT + offset for offset in (0x1010, 0x2010, 0x3010, 0x4010, 0x4100, 0x5010, 0x6010)
)
CHAIN = [perf.IN_KERNEL, READ, OPEN, ENTRY]
NAMES = ("entry_SYSCALL_64", "vfs_open", "down_read")
KERNEL_TEXT = perf.kernel_mmap(TEXT, 0x8000, "[kernel.kallsyms]_text", offset=TEXT)
Reader = Callable[..., PerfProfile]


@pytest.fixture
def read(tmp_path: Path) -> Reader:
    """Reads a file made of these records, or these bytes."""
    (tmp_path / "System.map").write_text(MAP)

    def reader(content: bytes | Sequence[bytes], **known: Any) -> PerfProfile:
        data = content if isinstance(content, bytes) else perf.perf_data([KERNEL_TEXT, *content])
        (tmp_path / "perf.data").write_bytes(data)
        return read_perf_data(tmp_path / "perf.data", ExpectedKernel(tmp_path / "System.map", **known))

    return reader


def stacks(profile: PerfProfile) -> dict[Stack, int]:
    return dict(stacks_of(profile.tree))


def golden(directory: Path) -> Path:
    (directory / "perf.data").write_bytes(lzma.decompress((GOLDEN / "perf.data.xz").read_bytes()))
    return directory / "perf.data"


def comparable(ours: dict[Stack, int]) -> dict[Stack, int]:
    """Without samples of user code: those have no callchain, and perf script prints nothing for them."""
    return {stack: count for stack, count in ours.items() if len(stack) > 1 and not _of_user(stack)}


def _of_user(stack: Stack) -> bool:
    return len(stack) == 2 and stack[1].startswith("[")


def nameless(folded: dict[Stack, int]) -> dict[Stack, int]:
    """Threads that exited are ":-1" to perf script: one that tells nothing, so we call all of them unknown."""
    renamed: Counter[Stack] = Counter()
    for stack, count in folded.items():
        renamed[(re.sub(r"^:-?\d+$", "[unknown]", stack[0]), *stack[1:])] += count
    return dict(renamed)


# Beside perf


def test_a_real_profile_has_the_stacks_that_perf_script_tells(tmp_path: Path) -> None:
    kernel = ExpectedKernel(GOLDEN / "System.map", "6.1.192-ke3b61b3e121b")
    profile = read_perf_data(golden(tmp_path), kernel)
    expected = nameless(read_folded((GOLDEN / "perf-script.folded").read_text()))
    assert comparable(stacks(profile)) == expected
    assert (profile.lost, profile.throttled, profile.truncated) == (0, 0, "")


def test_samples_of_user_code_which_perf_script_prints_nothing_for_are_counted(tmp_path: Path) -> None:
    profile = read_perf_data(golden(tmp_path), ExpectedKernel(GOLDEN / "System.map"))
    user = {stack: count for stack, count in stacks(profile).items() if _of_user(stack)}
    assert user == {("showgids", "[showgids]"): 12}
    assert profile.samples == 787 == 775 + 12


@pytest.mark.process
def test_the_golden_text_is_what_the_installed_perf_prints(tmp_path: Path) -> None:
    folded = fold_perf_data(golden(tmp_path), GOLDEN / "System.map")
    assert dict(folded.stacks) == read_folded((GOLDEN / "perf-script.folded").read_text())


STORY = [
    perf.comm(7, "shell", 0),
    perf.mmap(7, 0x400000, 0x10000, "/bin/shell", 0),
    perf.fork(8, 7, 10),
    perf.fork(7, 7, 11, tid=9, parent_tid=7),
    perf.sample(8, 20, [*CHAIN, perf.IN_USER, 0x400010]),
    perf.comm(8, "walk er", 30),
    perf.mmap(8, 0x400000, 0x8000, "/bin/walker", 30),
    perf.sample(8, 40, [*CHAIN, perf.IN_USER, 0x400010, 0x400020, 0x40F000]),
    perf.sample(7, 41, [*CHAIN, perf.IN_USER, 0x400010, 0x999000]),
    perf.sample(9, 42, CHAIN, pid=7),
    perf.sample(0, 43, [perf.IN_KERNEL, OPEN], pid=0),
    perf.sample(55, 44, CHAIN),
]


def test_threads_and_files_have_the_names_they_had_at_the_time(read: Reader) -> None:
    assert stacks(read(STORY)) == {
        ("shell", "[shell]", *NAMES): 1,
        ("walk er", "[shell]", "[walker]", *NAMES): 1,
        ("shell", "[unknown]", "[shell]", *NAMES): 1,
        ("shell", *NAMES): 1,
        ("swapper", "vfs_open"): 1,
        ("[unknown]", *NAMES): 1,
    }


@pytest.mark.process
def test_perf_script_tells_the_same_story(read: Reader, tmp_path: Path) -> None:
    ours = stacks(read(STORY))
    assert nameless(dict(fold_perf_data(tmp_path / "perf.data", tmp_path / "System.map").stacks)) == ours


def test_events_out_of_order_in_the_file_are_told_in_the_order_of_their_times(read: Reader) -> None:
    assert stacks(read([STORY[0], *reversed(STORY[1:])])) == stacks(read(STORY))


# What frames are called


def test_the_kernels_own_files_and_later_code_give_their_frames_a_name(read: Reader) -> None:
    module, program = 0xFFFFFFFFC0000000, 0xFFFFFFFFC0100000
    ksymbol = struct.pack("<QIHH", program, 0x100, 1, 0) + perf.text("bpf_prog_6deef7357e7b4530")
    profile = read(
        [
            perf.kernel_mmap(module, 0x4000, "/lib/modules/6.1/kernel/ext4.ko"),
            perf.record(17, 0, ksymbol + perf.trailer(0, 0)),
            perf.comm(7, "a", 0),
            perf.sample(7, 1, [perf.IN_KERNEL, module + 8, module + 16, OPEN, program + 4, ENTRY]),
        ]
    )
    assert stacks(profile) == {("a", NAMES[0], "bpf_prog_6deef7357e7b4530", "vfs_open", "[ext4]"): 1}


def test_of_several_names_at_an_address_the_last_is_taken_but_never_a_bound(read: Reader) -> None:
    chain = [perf.IN_KERNEL, TEXT + 0x7004, TEXT + 0x8004, TEXT + 0x10, READ, OPEN, ENTRY]
    profile = read([perf.comm(7, "a", 0), perf.sample(7, 1, chain)])
    assert stacks(profile) == {("a", *NAMES, "[kernel.kallsyms]", "[unknown]", "memcpy"): 1}


def test_a_call_that_never_returns_belongs_to_the_function_it_ends(read: Reader) -> None:
    profile = read([perf.comm(7, "a", 0), perf.sample(7, 1, [perf.IN_KERNEL, EXIT, NEXT, ENTRY])])
    assert stacks(profile) == {("a", NAMES[0], "do_group_exit", "do_exit"): 1}


def test_an_interrupted_first_instruction_and_the_innermost_frame_stay_where_they_are(read: Reader) -> None:
    chain = [perf.IN_KERNEL, INTERRUPT, NEXT, ENTRY]
    profile = read(
        [perf.comm(7, "a", 0), perf.sample(7, 1, chain), perf.sample(7, 2, [perf.IN_KERNEL, NEXT])]
    )
    assert stacks(profile) == {
        ("a", NAMES[0], "next_function", "asm_sysvec_apic_timer_interrupt"): 1,
        ("a", "next_function"): 1,
    }


def test_a_call_under_way_in_a_thunk_is_of_the_function_called(read: Reader) -> None:
    profile = read([perf.comm(7, "a", 0), perf.sample(7, 1, [perf.IN_KERNEL, TEXT + 0x7804, NEXT, ENTRY])])
    assert stacks(profile) == {("a", NAMES[0], "next_function", "__x86_indirect_thunk_rax"): 1}


def test_a_kernel_that_moved_itself_at_boot_is_told_by_where_its_text_was(read: Reader) -> None:
    shift = 0x12000000
    moved = [perf.IN_KERNEL, *(address + shift for address in CHAIN[1:])]
    text = perf.kernel_mmap(TEXT + shift, 0x8000, "[kernel.kallsyms]_text", offset=TEXT + shift)
    data = perf.perf_data([text, perf.comm(7, "a", 0), perf.sample(7, 1, moved)])
    assert stacks(read(data)) == {("a", *NAMES): 1}


def test_a_system_map_of_another_kernel_is_noticed(read: Reader) -> None:
    elsewhere = [perf.IN_KERNEL, *(address + 0x12000000 for address in CHAIN[1:])]
    with pytest.raises(ProfileUnreadable, match=r"3 of 3 kernel addresses .* not in its System.map"):
        read([perf.comm(7, "a", 0), perf.sample(7, 1, elsewhere)])


def test_a_stack_of_eight_thousand_frames_is_kept_whole(read: Reader) -> None:
    profile = read([perf.comm(7, "a", 0), perf.sample(7, 1, [perf.IN_KERNEL, *([OPEN, READ] * 4000)])])
    (stack,) = stacks(profile)
    assert len(stack) == 8001


# Layouts


def test_a_sample_without_a_callchain_has_its_own_address(read: Reader) -> None:
    profile = read([perf.comm(7, "a", 0), perf.sample(7, 1, [], ip=0x400010), perf.sample(7, 1, [], ip=READ)])
    assert stacks(profile) == {("a", "[unknown]"): 1, ("a", "down_read"): 1}


def test_of_several_events_the_first_makes_the_profile_and_the_others_are_counted(read: Reader) -> None:
    common = perf.IDENTIFIER | perf.IP | perf.TID | perf.TIME
    group = 1 | 4 | 8 | 16
    attrs = [
        (perf.attr(common | perf.READ | perf.CALLCHAIN, group), (1,)),
        (perf.attr(common | perf.CPU), (2,)),
    ]
    values = struct.pack("<QQ6Q", 2, 99, *range(6))
    chain = struct.pack("<5Q", 4, *CHAIN)
    first = struct.pack("<QQIIQ", 1, READ, 7, 7, 5) + values + chain
    second = struct.pack("<QQIIQII", 2, OPEN, 7, 7, 6, 3, 0)
    # The trailers differ as well: the second event's has the CPU.
    named = struct.pack("<II", 7, 7) + perf.text("late") + struct.pack("<IIQIIQ", 7, 7, 6, 3, 0, 2)
    named_first = struct.pack("<II", 7, 7) + perf.text("early") + struct.pack("<IIQQ", 7, 7, 1, 1)
    records = [perf.record(9, 1, first), perf.record(9, 1, second)]
    records += [perf.record(3, 0, named), perf.record(3, 0, named_first)]
    profile = read(perf.perf_data(records, attrs=attrs))
    assert stacks(profile) == {("early", *NAMES): 1}
    assert profile.others == 1


def test_without_times_the_order_in_the_file_counts(read: Reader) -> None:
    kind = perf.IP | perf.TID | perf.CALLCHAIN

    def at(ip: int) -> bytes:
        return perf.record(9, 1, struct.pack("<QIIQ", ip, 7, 7, 0))

    def name(name: str) -> bytes:
        return perf.record(3, 0, struct.pack("<II", 7, 7) + perf.text(name) + struct.pack("<II", 7, 7))

    records = [at(OPEN), name("a"), at(OPEN), name("b"), at(OPEN)]
    profile = read(perf.perf_data(records, attrs=[(perf.attr(kind), (1,))]))
    assert stacks(profile) == {("[unknown]", "vfs_open"): 1, ("a", "vfs_open"): 1, ("b", "vfs_open"): 1}


# What is missing


def test_what_the_kernel_lost_counts_once_though_perf_may_tell_it_twice(read: Reader) -> None:
    records = [perf.sample(7, 1, CHAIN), perf.lost(10), perf.lost(5), perf.lost_samples(17), perf.throttle()]
    profile = read(perf.perf_data(records, attrs=[(perf.attr(perf.PLAIN, 16), (1,))]))
    assert (profile.samples, profile.lost, profile.throttled) == (1, 17, 1)
    # Without PERF_FORMAT_LOST the second number is the hardware's own.
    assert read(perf.perf_data(records)).lost == 32


def test_a_file_cut_short_tells_what_is_whole_and_that_it_was_cut(read: Reader) -> None:
    data = perf.perf_data([KERNEL_TEXT, *STORY])
    whole = read(data).samples
    seen = set()
    for end in range(len(data) - 1, 400, -8):
        profile = read(data[:end])
        assert "ends" in profile.truncated
        assert profile.samples <= whole
        seen.add(profile.samples)
        if profile.samples == 1:
            break
    assert seen == set(range(1, whole))


def test_a_perf_that_was_killed_leaves_a_file_of_unknown_length_which_is_read_to_its_end(
    read: Reader,
) -> None:
    data = bytearray(perf.perf_data([KERNEL_TEXT, *STORY]))
    data[48:56] = bytes(8)
    profile = read(bytes(data))
    assert profile.samples == 6
    assert profile.truncated == "perf record did not live to finish the file"


def test_records_that_overrun_their_section_are_left_out(read: Reader) -> None:
    data = bytearray(perf.perf_data([KERNEL_TEXT, *STORY]))
    size = int.from_bytes(data[48:56], "little")
    data[48:56] = (size - 8).to_bytes(8, "little")
    profile = read(bytes(data))
    assert (profile.samples, profile.truncated) == (5, "the last record runs over the end of the records")


# What is refused


def test_a_profile_of_another_release_or_build_is_refused(read: Reader) -> None:
    event = struct.pack(
        "<IHHi20sB3x", 0, 1 | 1 << 15, 60, -1, bytes(range(20)), 20
    ) + b"[kernel.kallsyms]".ljust(24, b"\0")
    features = {2: event, 4: perf.string("6.1.1-kabc"), 6: perf.string("x86_64")}
    data = perf.perf_data([KERNEL_TEXT, *STORY], features=features)
    build_id = bytes(range(20)).hex()
    assert read(data, release="6.1.1-kabc", build_id=build_id).kernel_build_id == build_id
    with pytest.raises(
        ProfileUnreadable, match=r"of another kernel: its release is '6.1.1-kabc', not '6.1.2'"
    ):
        read(data, release="6.1.2")
    with pytest.raises(ProfileUnreadable, match="of another kernel: its build id is"):
        read(data, build_id="ff" * 20)


def test_a_build_id_that_the_kernels_mapping_tells_counts_as_well(read: Reader) -> None:
    body = struct.pack("<IIQQQ", 0xFFFFFFFF, 0, TEXT, 0x8000, TEXT) + struct.pack(
        "<BBH20sII", 20, 0, 0, b"\xab" * 20, 5, 2
    )
    mapping = perf.record(10, 1 | 1 << 14, body + perf.text("[kernel.kallsyms]_text") + perf.trailer(0, 0))
    assert read(perf.perf_data([mapping, *STORY])).kernel_build_id == "ab" * 20


GOOD = perf.perf_data([KERNEL_TEXT, *STORY])


def with_feature(number: int) -> bytes:
    return perf.perf_data([*STORY], features={number: perf.string("s390x")})


REFUSED = [
    (b"", "it is empty"),
    (b"\x7fELF" + bytes(200), "not a perf.data: it begins with"),
    (b"PERFILE2"[::-1] + bytes(200), "big-endian"),
    (b"PERFFILE" + bytes(200), "first format"),
    (GOOD[:8] + (16).to_bytes(8, "little"), "written to a pipe"),
    (GOOD[:90], "ends within its header"),
    (with_feature(27), "is compressed; record it without -z"),
    (with_feature(6), "'s390x', which is not read here"),
    (perf.perf_data([]), "holds no sample"),
    (perf.perf_data([STORY[0]]), "holds no sample"),
    (perf.perf_data([perf.record(81, 0, bytes(16))]), "holds compressed records"),
    (perf.perf_data([perf.record(71, 0, bytes(40))]), "holds AUX traces"),
    (perf.perf_data([*STORY, bytes(8)]), r"a record of 0 bytes at \d+"),
    (perf.perf_data([*STORY, struct.pack("<IHH", 9, 0, 12) + bytes(8)]), "a record of 12 bytes"),
    (perf.perf_data([perf.record(9, 1, bytes(8))]), "samples shorter than their fields"),
    (perf.perf_data([perf.record(9, 1, bytes(24))]), "end before their callchain"),
    (
        perf.perf_data([perf.record(9, 1, bytes(24) + b"\xff" * 8)]),
        "callchains longer than their samples",
    ),
    (perf.perf_data([*STORY, perf.record(3, 0, b"")]), "too short for its time"),
    (perf.perf_data([*STORY, perf.record(10, 2, bytes(24))]), "of type 10 shorter than its fields"),
    (perf.perf_data([*STORY, perf.record(13, 0, b"")]), "of type 13 shorter than its fields"),
    (perf.perf_data(STORY, attrs=[(perf.attr(perf.IP | perf.CALLCHAIN), ())]), "tell no thread"),
    (
        perf.perf_data(STORY, attrs=[(perf.attr(perf.PLAIN), (1,)), (perf.attr(perf.IP | perf.TID), (2,))]),
        "nothing tells them apart",
    ),
    (perf.perf_data(STORY, attrs=[]), "has 0 events"),
]


@pytest.mark.parametrize(("data", "why"), REFUSED, ids=[why for _, why in REFUSED])
def test_what_cannot_be_read_is_refused_in_one_clear_line(read: Reader, data: bytes, why: str) -> None:
    with pytest.raises(ProfileUnreadable, match=why) as caught:
        read(data)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", ["", "no map\n", "0000000000000000 D only_data\n"])
def test_a_system_map_that_is_none_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "System.map").write_text(content)
    with pytest.raises(ProfileUnreadable, match="names no function"):
        read_perf_data(golden(tmp_path), ExpectedKernel(tmp_path / "System.map"))


def test_files_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(ProfileUnreadable, match=r"perf\.data cannot be read: No such file"):
        read_perf_data(tmp_path / "perf.data", ExpectedKernel(GOLDEN / "System.map"))
    with pytest.raises(ProfileUnreadable, match=r"System\.map cannot be read: No such file"):
        read_perf_data(golden(tmp_path), ExpectedKernel(tmp_path / "System.map"))
