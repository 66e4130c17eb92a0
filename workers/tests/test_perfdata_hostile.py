# SPDX-License-Identifier: GPL-2.0-or-later
"""Nothing that a guest writes into a perf.data does more than make it unreadable, and that soon."""

from __future__ import annotations

import lzma
import random
import struct
import time
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from lab.profiles.analysis.frame_tree import pack, unpack
from workers.collect import perfdata_names
from workers.collect.perfdata import ExpectedKernel, PerfProfile, read_perf_data
from workers.errors import ProfileUnreadable
from workers.tests import perfwriter as perf
from workers.tests.test_perfdata import CHAIN, GOLDEN, KERNEL_TEXT, MAP, OPEN, STORY

WHOLE = lzma.decompress((GOLDEN / "perf.data.xz").read_bytes())
BEGIN = 424
MOST_SECONDS = 5.0
HUGE = (0, 1, 7, 8, 0xFFFF, 1 << 31, (1 << 32) - 1, 1 << 53, 1 << 63, (1 << 64) - 8, (1 << 64) - 1)
Mutation = Callable[[bytearray, random.Random], None]


def flip_bits(data: bytearray, chance: random.Random) -> None:
    for _ in range(chance.choice([1, 10, 1000])):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def cut_off(data: bytearray, chance: random.Random) -> None:
    del data[chance.randrange(len(data)) :]


def cut_out(data: bytearray, chance: random.Random) -> None:
    begin = chance.randrange(len(data))
    del data[begin : begin + chance.randrange(4000)]


def wild_sizes(data: bytearray, chance: random.Random) -> None:
    """Sizes of records, which stand in the last two bytes of their first word."""
    for _ in range(20):
        at = BEGIN + 8 * chance.randrange(2000)
        struct.pack_into("<H", data, at + 6, chance.choice([0, 1, 4, 8, 16, 24, 0xFFF8, 0xFFFF]))


def wild_words(data: bytearray, chance: random.Random) -> None:
    """Counts, addresses, times and tasks."""
    for _ in range(chance.choice([5, 500])):
        struct.pack_into("<Q", data, BEGIN + 8 * chance.randrange(15000), chance.choice(HUGE))


def wild_header(data: bytearray, chance: random.Random) -> None:
    """Offsets that point anywhere, at each other too."""
    for _ in range(chance.randrange(1, 4)):
        near = chance.choice([*HUGE, 0, 8, 104, BEGIN, len(data) - 8, len(data), chance.randrange(len(data))])
        struct.pack_into("<Q", data, 8 * chance.randrange(1, BEGIN // 8), near)


def wild_kinds(data: bytearray, chance: random.Random) -> None:
    """Records of one type said to be of another."""
    at = BEGIN
    while at + 8 <= len(data) - 6000:
        kind, misc, size = struct.unpack_from("<IHH", data, at)
        if chance.random() < 0.05:
            kind = chance.choice([1, 2, 3, 5, 7, 9, 10, 13, 17, 68, 99])
            misc = chance.choice([0, 1, 2, 1 << 13 | 2, 1 << 14 | 1])
            struct.pack_into("<IHH", data, at, kind, misc, size)
        at += max(8, size)


MUTATIONS = [flip_bits, cut_off, cut_out, wild_sizes, wild_words, wild_header, wild_kinds]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("mutate", MUTATIONS)
def test_a_mutated_file_is_read_or_refused_and_soon(tmp_path: Path, mutate: Mutation, seed: int) -> None:
    data = bytearray(WHOLE)
    mutate(data, random.Random(f"{mutate.__name__} {seed}"))
    (tmp_path / "perf.data").write_bytes(data)
    began = time.process_time()
    with suppress(ProfileUnreadable):
        profile = read_perf_data(tmp_path / "perf.data", ExpectedKernel(GOLDEN / "System.map"))
        assert unpack(pack(profile.tree)).samples == profile.samples > 0
        assert 0 <= profile.lost < 1 << 63
    assert time.process_time() - began < MOST_SECONDS


def read(directory: Path, data: bytes) -> PerfProfile:
    (directory / "System.map").write_text(MAP)
    (directory / "perf.data").write_bytes(data)
    return read_perf_data(directory / "perf.data", ExpectedKernel(directory / "System.map"))


def test_processes_that_map_and_fork_again_and_again_do_not_fill_memory(tmp_path: Path) -> None:
    records = [KERNEL_TEXT]
    records += [perf.mmap(1, 0x10000 * n, 0x1000, f"/lib/{n}", 0) for n in range(1, 4000)]
    for pid in range(2, 3000):
        records += [perf.fork(pid, pid - 1, pid), perf.mmap(pid, 0x5000, 0x1000, "/bin/x", pid)]
    records += [perf.sample(2999, 5000, [*CHAIN, perf.IN_USER, 0x5000])]
    began = time.process_time()
    tracemalloc.start()
    with pytest.raises(ProfileUnreadable, match="more mappings than processes have"):
        read(tmp_path, perf.perf_data(records))
    assert tracemalloc.get_traced_memory()[1] < 100 << 20
    tracemalloc.stop()
    assert time.process_time() - began < MOST_SECONDS


def test_more_processes_than_are_looked_at_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(perfdata_names, "MOST_EVENTS", 5)
    with pytest.raises(ProfileUnreadable, match="more than 5 processes and mappings"):
        read(tmp_path, perf.perf_data(STORY))


def test_a_kernel_of_ten_thousand_modules_is_refused(tmp_path: Path) -> None:
    modules = [perf.kernel_mmap(0xFFFFFFFFC0000000 + 0x1000 * n, 0x1000, f"[m{n}]") for n in range(10_000)]
    with pytest.raises(ProfileUnreadable, match="10000 mappings of the kernel's own"):
        read(tmp_path, perf.perf_data([*modules, perf.sample(7, 1, CHAIN)]))


def test_a_fork_of_itself_and_of_its_child_ends(tmp_path: Path) -> None:
    circle = [perf.fork(7, 8, 1), perf.fork(8, 7, 2), perf.fork(7, 8, 3), perf.fork(7, 7, 4)]
    profile = read(tmp_path, perf.perf_data([*circle, perf.sample(7, 5, [*CHAIN, perf.IN_USER, 0x5000])]))
    assert profile.samples == 1


def test_fifty_thousand_different_stacks_take_memory_in_proportion(tmp_path: Path) -> None:
    records = [
        perf.sample(7, n, [perf.IN_KERNEL, *([OPEN] * (n % 50)), OPEN + n % 4000]) for n in range(50_000)
    ]
    began = time.process_time()
    assert read(tmp_path, perf.perf_data([KERNEL_TEXT, *records])).samples == 50_000
    assert time.process_time() - began < MOST_SECONDS


def test_a_file_beyond_the_limit_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.collect.perfdata.MOST_BYTES", 1 << 20)
    with pytest.raises(ProfileUnreadable, match="larger than 1 MiB"):
        read(tmp_path, bytes(2 << 20))


def test_a_command_or_file_name_is_text_whatever_it_holds(tmp_path: Path) -> None:
    evil = "<img src=x onerror=alert(1)>;a\nb"
    records = [perf.comm(7, evil, 0), perf.mmap(7, 0x5000, 0x1000, "/x/" + evil, 0)]
    profile = read(tmp_path, perf.perf_data([*records, perf.sample(7, 5, [*CHAIN, perf.IN_USER, 0x5000])]))
    assert {evil, f"[{evil}]"} <= set(unpack(pack(profile.tree)).names)
