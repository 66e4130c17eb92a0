# SPDX-License-Identifier: GPL-2.0-or-later
"""Slab caches are found in a guest's memory as it is, and memory that is otherwise costs no more than names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from workers.collect.waiting_reader import chain
from workers.drivers.base import ReadMemory
from workers.errors import TargetLost
from workers.microscope.contention import LineWaits, LockWaits, WaitShare
from workers.microscope.line_names import LineNames
from workers.microscope.slab_pages import Place, read_slab_pages, slab_pages
from workers.tests.guestmemory import IMAGE, MEMORY_MIB, PAGE_OFFSET, SYSTEM_MAP, VMEMMAP, GuestMemory
from workers.tests.test_line_names import TREE

CACHES = [(b"dentry", 192, 100, 1), (b"kmalloc-96", 96, 200, 1), (b"inode_cache", 600, 300, 4), (b"kmalloc-1k", 1024, 400, 8)]  # fmt: skip


def at(page: int, offset: int) -> int:
    return PAGE_OFFSET + 4096 * page + offset


@pytest.mark.parametrize("where", [24, 8], ids=["as in 6.1", "since 6.2"])
def test_an_address_has_its_cache_and_its_place_in_the_object(where: int) -> None:
    pages = read_slab_pages(GuestMemory(CACHES, where).read, SYSTEM_MAP, MEMORY_MIB)
    assert pages is not None
    assert pages.place(at(100, 192 + 88)) == Place("dentry", 88, 192)
    assert pages.place(at(303, 0)) == Place("inode_cache", 3 * 4096 % 600, 600), (
        "objects run over pages of a slab"
    )
    assert pages.place(at(407, 4095)) == Place("kmalloc-1k", 1023, 1024)
    for elsewhere in (at(101, 0), at(304, 0), at(1 << 40, 0), IMAGE, 0, VMEMMAP):
        assert pages.place(elsewhere) is None


def test_struct_pages_are_read_once_and_small_pieces_by_the_page() -> None:
    memory = GuestMemory(CACHES)
    read_slab_pages(memory.read, SYSTEM_MAP, MEMORY_MIB)
    assert memory.reads < 12


def test_lines_and_locks_are_named_by_their_slab_caches() -> None:
    pages = read_slab_pages(GuestMemory(CACHES).read, SYSTEM_MAP, MEMORY_MIB)
    names = LineNames("", partial(chain, TREE), pages)
    shares = (WaitShare(5, 1, 1),)
    line = partial(
        LineWaits, cycles=1, transfers=1, apart=0, cpus=2, writers=1, false_sharing=False, nodes=shares
    )
    who = "of kernfs_dop_revalidate → down_read"
    assert names.line(line(at(100, 192 + 64))) == f"slab dentry, bytes 64 to 127, {who}"
    assert names.line(line(at(200, 64))) == f"slab kmalloc-96, bytes 64 to 95 and the next object, {who}"
    assert names.line(line(at(101, 0))) == f"kernel memory {who}"
    lock = LockWaits(at(100, 88), "spinlock", 1, 1, 1, shares)
    assert names.lock(lock) == f"spinlock {who} (slab dentry, offset 88)"


def spoilt(address: int, *words: int) -> GuestMemory:
    memory = GuestMemory(CACHES)
    memory.put(address, *words)
    return memory


LIST = 0x20000 + 104
ENDLESS = spoilt(LIST, PAGE_OFFSET + LIST)
UNLIKE = {
    "nothing at all": GuestMemory([]),
    "another place of all memory": spoilt(0x7000, 0xFFFF999000000000, VMEMMAP),
    "no page table": spoilt(0x3000 + 8 * (VMEMMAP >> 39 & 511), 0),
    "a page table of itself": spoilt(0x3000 + 8 * (VMEMMAP >> 39 & 511), 0x3001),
    "a list that leads out of memory": spoilt(0x2000, 1 << 62),
    "a list that leads into a program": spoilt(0x2000, 0x400000),
    "a list that leads behind the image": spoilt(0x2000, (1 << 64) - 4),
    "a list that never ends": ENDLESS,
    "sizes elsewhere": GuestMemory([(b"kmalloc-96", 192, 200, 1)]),
    "no cache with its size in its name": GuestMemory([(b"dentry", 192, 200, 1)]),
    "a size of nothing": GuestMemory([(b"kmalloc-96", 0, 200, 1)]),
    "a size beyond a slab": GuestMemory([(b"kmalloc-96", 1 << 31, 200, 1)]),
    "names that are none": GuestMemory([(b"<script>\x1b[2J", 192, 200, 1)]),
    "a name without an end": GuestMemory([(b"kmalloc-96" * 6 + b"\xff" * 4, 96, 200, 1)]),
}


@pytest.mark.hostile
@pytest.mark.parametrize("memory", UNLIKE.values(), ids=UNLIKE)
def test_memory_that_is_not_as_expected_gives_no_names(memory: GuestMemory) -> None:
    pages = read_slab_pages(memory.read, SYSTEM_MAP, MEMORY_MIB)
    assert pages is None or all(pages.place(at(page, 0)) is None for page in (100, 200))
    assert memory.reads < 50


@pytest.mark.hostile
@pytest.mark.parametrize("head", [VMEMMAP - 63, VMEMMAP + (1 << 40) + 1, 1, (1 << 64) - 1])
def test_a_tail_page_whose_head_is_nowhere_is_a_page_of_its_own(head: int) -> None:
    memory = spoilt(0x200000 + 64 * 301 + 8, head)
    pages = read_slab_pages(memory.read, SYSTEM_MAP, MEMORY_MIB)
    assert pages is not None
    assert pages.place(at(301, 0)) is None
    assert pages.place(at(302, 0)) == Place("inode_cache", 2 * 4096 % 600, 600)


@pytest.mark.hostile
@pytest.mark.parametrize("symbol", ["slab_caches", "init_top_pgt"])
def test_a_kernel_without_these_symbols_has_no_slab_names(symbol: str) -> None:
    without = "".join(line for line in SYSTEM_MAP.splitlines(keepends=True) if symbol not in line)
    assert read_slab_pages(GuestMemory(CACHES).read, without, MEMORY_MIB) is None


class Stopped:
    """A session with a guest that libvirt stops, and lets go on unless it is `stuck`."""

    def __init__(self, read: ReadMemory, *, stuck: bool = False) -> None:
        self.read, self.stuck = read, stuck

    @contextmanager
    def memory(self) -> Iterator[ReadMemory]:
        yield self.read
        if self.stuck:
            raise TargetLost("libvirt cannot be asked to let a guest go on")


@pytest.fixture
def request_(tmp_path: Path) -> Any:
    (tmp_path / "System.map").write_text(SYSTEM_MAP)
    return SimpleNamespace(kernel=tmp_path / "bzImage", machine=SimpleNamespace(memory_mib=MEMORY_MIB))


def test_memory_that_cannot_be_read_costs_only_names(request_: Any) -> None:
    def unreadable(address: int, size: int) -> bytes:
        raise TargetLost("libvirt cannot be asked to read a guest's memory")

    session: Any = Stopped(unreadable)
    assert slab_pages(session, request_) is None


def test_a_guest_that_does_not_go_on_is_lost_and_its_kernel_not_blamed(request_: Any) -> None:
    session: Any = Stopped(GuestMemory(CACHES).read, stuck=True)
    with pytest.raises(TargetLost, match="go on"):
        slab_pages(session, request_)
