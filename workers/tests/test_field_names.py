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
    return Struct(size=size, file="fs/inode.o", fields=tuple(StructField(*one) for one in fields))


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
LOCK, COUNT = 0xF << 24, 0xF << 28


@pytest.mark.parametrize(
    ("place", "used", "name"),
    [
        (Place("inode_cache", 0, 104, 104), [LOCK], "i_lock in struct inode"),
        (Place("inode_cache", 0, 104, 104), [COUNT, LOCK, COUNT], "i_count beside i_lock in struct inode"),
        (Place("ext4_inode_cache", 64, 168, 168), [LOCK], "i_lock in struct inode (ext4_inode_info.vfs_inode)"),
        (
            Place("ext4_inode_cache", 40, 168, 168),
            [1 << 48 | 1],
            "i_lock in struct inode (ext4_inode_info.vfs_inode)",
        ),
        (
            Place("ext4_inode_cache", 128, 168, 168),
            [1, 1 << 40],
            "i_rwsem in struct inode (ext4_inode_info.vfs_inode) beside i_flags in struct ext4_inode_info",
        ),
        (Place("task_struct", 0, 320, 320), [1], "usage in struct task_struct"),
        (Place("kmalloc-192", 64, 192, 0, "sysfs_root"), [0xFF << 32], "kernfs_rwsem in struct kernfs_root (*sysfs_root)"),
        # Padding, merged with other caches, other objects than the source says, a structure that does not fit, nobody's.
        (Place("inode_cache", 0, 104, 104), [1 << 16], ""),
        (Place("inode_cache", 0, 104, 104), [], ""),
        (Place("inode_cache", 0, 104, 0), [LOCK], ""),
        (Place("inode_cache", 0, 128, 128), [LOCK], ""),
        (Place("task_struct", 0, 320, 0), [1], ""),
        (Place("kmalloc-96", 0, 96, 0, "sysfs_root"), [1], ""),
        (Place("kmalloc-512", 0, 512, 0, "sysfs_root"), [1], ""),
        (Place("kmalloc-192", 0, 192, 0, "unheard_of"), [1], ""),
        (Place("kmalloc-192", 0, 192, 0), [1], ""),
    ],
)  # fmt: skip
def test_bytes_of_an_object_have_their_fields(place: Place, used: list[int], name: str) -> None:
    assert FIELDS.in_object(place, used, " beside ") == name
    assert FieldNames(None).in_object(place, used) == ""


def test_a_line_that_runs_over_an_object_names_fields_of_both() -> None:
    place = Place("inode_cache", 64, 104, 104)
    assert FIELDS.in_object(place, [1, 1 << 40]) == "i_rwsem, i_state in struct inode"


def test_of_many_fields_three_are_named() -> None:
    fields = [(at, 8, f"f{at}", "inode") for at in range(0, 64, 8)]
    many = FieldNames(STRUCTURES.model_copy(update={"structs": {"inode": struct(104, fields)}}))
    name = many.in_object(Place("inode_cache", 0, 104, 104), [(1 << 64) - 1])
    assert name == "f0, f8, f16 in struct inode and more"


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
    assert merged == Place("inode_cache", 0, 104)


def test_without_structures_a_guest_tells_no_more_than_before() -> None:
    pages = pages_of(guest(), None)
    assert pages.place(object_at(200, 100)) == Place("kmalloc-192", 100, 192)


LINE = LineWaits(object_at(200, 64), 1, 1, 0, 2, 1, False, (WaitShare(5, 1, 1, 0xFF << 32),))
WHO = "of kernfs_dop_revalidate → down_read"


def test_a_line_and_a_lock_begin_with_their_fields() -> None:
    names = LineNames(MAP, partial(chain, TREE), pages_of(guest(), STRUCTURES), STRUCTURES)
    assert names.line(LINE) == (
        f"kernfs_rwsem in struct kernfs_root (*sysfs_root), slab kmalloc-192, bytes 64 to 127, {WHO}"
    )
    shares = (WaitShare(5, 2, 1, LOCK), WaitShare(5, 1, 1, COUNT))
    inode = replace(LINE, address=object_at(100), nodes=shares, false_sharing=True)
    assert (
        names.line(inode) == f"i_lock beside i_count in struct inode, slab inode_cache, bytes 0 to 63, {WHO}"
    )
    lock = LockWaits(object_at(100, 24), "spinlock", 1, 1, 1, (WaitShare(5, 1, 1),))
    assert names.lock(lock) == f"spinlock {WHO} (slab inode_cache, offset 24: i_lock in struct inode)"


def test_a_static_structure_has_the_fields_that_were_waited_for() -> None:
    names = LineNames(MAP, partial(chain, TREE), None, STRUCTURES)
    used = WaitShare(5, 1, 1, 0xFF << 8 | 0xFF << 24)
    static = replace(LINE, address=IMAGE + 0x8040, nodes=(used,))
    assert names.line(static) == "files_stat (max_files in struct files_stat), jiffies"
    assert names.line(replace(static, nodes=())) == "files_stat, jiffies"


def test_older_artifacts_keep_their_names() -> None:
    names = LineNames(MAP, partial(chain, TREE), pages_of(guest(), None))
    assert names.line(LINE) == f"slab kmalloc-192, bytes 64 to 127, {WHO}"
