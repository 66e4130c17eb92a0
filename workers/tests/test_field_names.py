# SPDX-License-Identifier: GPL-2.0-or-later
"""Cache lines and locks have the names of their fields where it is certain which these are, and only there."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from kernels.artifacts.structures import Cache, Struct, StructField, Structures
from workers.collect.waiting_reader import chain
from workers.microscope.contention import LineWaits, LockWaits, WaitShare
from workers.microscope.field_names import FieldNames
from workers.microscope.line_names import LineNames
from workers.microscope.slab_pages import Place, SlabPages, read_slab_pages
from workers.tests.guestmemory import IMAGE, MEMORY_MIB, PAGE_OFFSET, SYSTEM_MAP, GuestMemory
from workers.tests.test_line_names import TREE

INODE = [(0, 8, "i_state", "inode"), (24, 4, "i_lock", "inode"), (28, 4, "i_count", "inode"), (64, 40, "i_rwsem", "inode")]  # fmt: skip
EXT4 = [(0, 4, "i_flags", "ext4_inode_info"), *((at + 64, size, f"vfs_inode.{name}", of) for at, size, name, of in INODE)]  # fmt: skip


def struct(size: int, fields: list[tuple[int, int, str, str]]) -> Struct:
    return Struct(size=size, file="fs/inode.o", fields=tuple(StructField(*field) for field in fields))


def cache(name: str, *, is_exact: bool = True) -> Cache:
    return Cache(struct=name, is_exact=is_exact, file="fs/inode.o")


STRUCTURES = Structures(
    structs={
        "inode": struct(104, INODE),
        "ext4_inode_info": struct(168, EXT4),
        "task_struct": struct(300, [(0, 8, "usage", "task_struct")]),
        "kernfs_root": struct(136, [(0, 8, "kn", "kernfs_root"), (96, 40, "kernfs_rwsem", "kernfs_root")]),
        "files_stat": struct(24, [(0, 8, "nr_files", "files_stat"), (8, 8, "max_files", "files_stat")]),
        "kmem_cache": struct(200, [(64, 4, "refcount", "kmem_cache")]),
    },
    caches={
        "inode_cache": cache("inode"),
        "ext4_inode_cache": cache("ext4_inode_info"),
        "task_struct": cache("task_struct", is_exact=False),
    },
    variables={"files_stat": "files_stat"},
    pointers={"sysfs_root": "kernfs_root", "other_root": "inode"},
)
FIELDS = FieldNames(STRUCTURES)
WHO = "of kernfs_dop_revalidate → down_read"


def waited(*bytes_: tuple[int, int], written: int = 0, shares: bool = False, address: int = 0) -> LineWaits:
    return LineWaits(address, 1, 1, 0, 2, 1, shares, (WaitShare(5, 1, 1),), bytes_, written)


@pytest.mark.parametrize(
    ("place", "byte", "name"),
    [
        (Place("inode_cache", 0, 104, 104), 24, "i_lock in struct inode"),
        (Place("inode_cache", 0, 104, 104), 26, "i_lock in struct inode"),
        (Place("ext4_inode_cache", 64, 168, 168), 24, "i_lock in struct inode (ext4_inode_info.vfs_inode)"),
        (Place("ext4_inode_cache", 128, 168, 168), 40, "i_flags in struct ext4_inode_info"),
        (Place("task_struct", 0, 320, 320), 0, "usage in struct task_struct"),
        (Place("kmalloc-192", 64, 192, 192, "sysfs_root"), 32, "kernfs_rwsem in struct kernfs_root (*sysfs_root)"),
        (Place("inode_cache", 0, 104, 0, "", True), 24, "perhaps i_lock in struct inode"),
        # Padding, other objects than the source says, objects that are too small or too large, nobody's, not known.
        (Place("inode_cache", 0, 104, 104), 16, ""),
        (Place("inode_cache", 0, 128, 128), 24, ""),
        (Place("inode_cache", 0, 96, 0, "", True), 24, ""),
        (Place("kmalloc-96", 0, 96, 96, "sysfs_root"), 0, ""),
        (Place("kmalloc-512", 0, 512, 512, "sysfs_root"), 0, ""),
        (Place("kmalloc-192", 0, 192, 192, "unheard_of"), 0, ""),
        (Place("kmalloc-192", 0, 192), 0, ""),
        (Place("inode_cache", 0, 104), 24, ""),
    ],
)  # fmt: skip
def test_a_byte_of_an_object_has_its_field(place: Place, byte: int, name: str) -> None:
    assert FIELDS.in_line(place, waited((byte, 1))) == name
    assert FIELDS.at(replace(place, offset=(place.offset + byte) % place.size)) == name
    assert FieldNames(None).in_line(place, waited((byte, 1))) == ""


INODE_PLACE = Place("inode_cache", 0, 104, 104)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (waited((28, 9), (24, 5)), "i_count, i_lock in struct inode"),
        (waited((24, 5), (25, 5), (28, 9)), "i_lock, i_count in struct inode"),
        (waited((28, 90), (24, 5)), "i_count in struct inode"),
        (waited(), ""),
        # False sharing: what is written stands first, also where its writer never waits.
        (waited((0, 9), (24, 5), written=0xF << 24, shares=True), "i_lock beside i_state in struct inode"),
        (waited((0, 9), written=0xF << 28, shares=True), "i_count beside i_state in struct inode"),
        (waited((28, 9), (24, 5), written=0xFF << 24, shares=True), "i_count beside i_lock in struct inode"),
        (waited((28, 9), written=0xF << 28, shares=True), "i_count in struct inode"),
    ],
)
def test_a_line_names_the_fields_that_were_waited_for_most(line: LineWaits, name: str) -> None:
    assert FIELDS.in_line(INODE_PLACE, line) == name


def test_fields_of_two_structures_are_each_in_their_own() -> None:
    place = Place("ext4_inode_cache", 128, 168, 168)
    line = waited((40, 9), (0, 5), written=1 << 40, shares=True)
    assert FIELDS.in_line(place, line) == (
        "i_flags in struct ext4_inode_info beside i_rwsem in struct inode (ext4_inode_info.vfs_inode)"
    )


CACHES = [(b"inode_cache", 104, 100, 1), (b"kmalloc-192", 192, 200, 1), (b"kmalloc-96", 96, 201, 1)]
MAP = (
    SYSTEM_MAP
    + """\
ffffffff80008000 d sysfs_root
ffffffff80008008 b other_root
ffffffff80008010 b other_root
ffffffff80008018 B somebody
ffffffff80008040 D files_stat
ffffffff80008058 D jiffies
ffffffff80008100 B _end
"""
)


def guest(*, alone: bool = True) -> GuestMemory:
    memory = GuestMemory(CACHES)
    for number in range(len(CACHES)):
        memory.put(0x20000 + 256 * number + 64, 1 if alone else 2)
    memory.put(0x8000, object_at(200), 0, 0, object_at(200))
    return memory


def object_at(page: int, offset: int = 0) -> int:
    return PAGE_OFFSET + 4096 * page + offset


def pages_of(memory: GuestMemory, structures: Structures | None) -> SlabPages:
    pages = read_slab_pages(memory.read, MAP, MEMORY_MIB, structures)
    assert pages is not None
    return pages


def test_a_guest_tells_which_caches_were_merged_and_where_its_variables_point() -> None:
    pages = pages_of(guest(), STRUCTURES)
    assert pages.place(object_at(100, 104 + 24)) == Place("inode_cache", 24, 104, 104)
    assert pages.place(object_at(200, 100)) == Place("kmalloc-192", 100, 192, 192, "sysfs_root")
    assert pages.place(object_at(200, 192)) == Place("kmalloc-192", 0, 192, 192)
    merged = pages_of(guest(alone=False), STRUCTURES).place(object_at(100))
    assert merged == Place("inode_cache", 0, 104, is_merged=True)


def test_without_structures_a_guest_tells_no_more_than_before() -> None:
    pages = pages_of(guest(), None)
    assert pages.place(object_at(200, 100)) == Place("kmalloc-192", 100, 192)


def test_a_line_and_a_lock_begin_with_their_fields() -> None:
    names = LineNames(MAP, partial(chain, TREE), pages_of(guest(), STRUCTURES), STRUCTURES)
    assert names.line(waited((32, 1), address=object_at(200, 64))) == (
        f"kernfs_rwsem in struct kernfs_root (*sysfs_root), slab kmalloc-192, bytes 64 to 127, {WHO}"
    )
    inode = waited((24, 5), (28, 4), written=0xF << 24, shares=True, address=object_at(100))
    assert (
        names.line(inode) == f"i_lock beside i_count in struct inode, slab inode_cache, bytes 0 to 63, {WHO}"
    )
    lock = LockWaits(object_at(100, 24), "spinlock", 1, 1, 1, (WaitShare(5, 1, 1),))
    assert names.lock(lock) == f"spinlock {WHO} (slab inode_cache, offset 24: i_lock in struct inode)"


def test_a_static_structure_has_the_fields_that_were_waited_for() -> None:
    names = LineNames(MAP, partial(chain, TREE), None, STRUCTURES)
    line = waited((8, 5), (24, 9), address=IMAGE + 0x8040)
    assert names.line(line) == "files_stat (max_files in struct files_stat), jiffies"
    assert names.line(replace(line, bytes=())) == "files_stat, jiffies"
    before = replace(line, address=IMAGE + 0x8000, bytes=((0x48, 1),))
    assert names.line(before) == "sysfs_root, other_root, somebody"


def test_a_lock_in_a_static_structure_is_its_field() -> None:
    names = LineNames(MAP, partial(chain, TREE), None, STRUCTURES)
    lock = LockWaits(IMAGE + 0x8048, "spinlock", 1, 1, 1, ())
    assert names.lock(lock) == "files_stat+0x8 (max_files in struct files_stat)"
    assert names.lock(replace(lock, address=IMAGE + 0x8058)) == "jiffies"
    assert names.lock(replace(lock, address=IMAGE + 0x8010)) == "other_root", "two symbols have that name"


def test_older_artifacts_keep_their_names() -> None:
    names = LineNames(MAP, partial(chain, TREE), pages_of(guest(), None))
    assert (
        names.line(waited((32, 1), address=object_at(200, 64))) == f"slab kmalloc-192, bytes 64 to 127, {WHO}"
    )
