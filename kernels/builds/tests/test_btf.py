# SPDX-License-Identifier: GPL-2.0-or-later
"""Layouts of structures are those of the compiler, and types of any shape end in a layout or in BtfDamaged."""

from __future__ import annotations

import random
import struct
import subprocess

import pytest

from kernels.artifacts.structures import StructField
from kernels.builds.btf import Btf, BtfDamaged, Layout

SOURCE = """
struct list { struct list *next, *prev; };
typedef struct { int counter; } atomic_t;
typedef struct lock { union { struct { int value; } raw; char bytes[4]; }; } lock_t;
struct inode {
    unsigned short mode;
    union { const unsigned nlink; unsigned more; };
    lock_t lock;
    struct list lru;
    unsigned is_new : 1, is_old : 9;
    struct { struct list of; long first; };
    long blocks[8];
    atomic_t count;
    union { struct list dentry; struct { void *rcu[3]; }; };
};
struct ext_inode { long disk_size; struct inode vfs_inode; char tail[]; };
typedef struct transaction { long id; } transaction_t;
struct ext_inode *of_all;
static struct transaction own;
transaction_t *points(struct ext_inode *inode) { own.id = inode->disk_size; return &own; }
"""


@pytest.fixture(scope="module")
def types(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("btf")
    (folder / "a.c").write_text(SOURCE)
    for argv in (
        ["gcc", "-c", "-gbtf", "-O2", "-flto", "-fno-fat-lto-objects", "-o", "a.o", "a.c"],
        [
            "objcopy",
            "-O",
            "binary",
            "--only-section=.BTF",
            "--set-section-flags",
            ".BTF=alloc",
            "a.o",
            "a.btf",
        ],
    ):
        subprocess.run(argv, cwd=folder, check=True)
    return (folder / "a.btf").read_bytes()


@pytest.mark.process
def test_fields_lie_where_the_compiler_puts_them(types: bytes) -> None:
    layout = Btf(types).layouts(["ext_inode"])["ext_inode"]
    assert layout.size == 168
    assert layout.fields == (
        StructField(0, 8, "disk_size", "ext_inode"),
        StructField(8, 2, "vfs_inode.mode", "inode"),
        StructField(12, 4, "vfs_inode.nlink", "inode"),
        StructField(16, 4, "vfs_inode.lock", "inode"),
        StructField(24, 16, "vfs_inode.lru", "inode"),
        StructField(40, 1, "vfs_inode.is_new", "inode"),
        StructField(41, 1, "vfs_inode.is_old", "inode"),
        StructField(48, 16, "vfs_inode.of", "inode"),
        StructField(64, 8, "vfs_inode.first", "inode"),
        StructField(72, 64, "vfs_inode.blocks", "inode"),
        StructField(136, 4, "vfs_inode.count", "inode"),
        StructField(144, 16, "vfs_inode.dentry", "inode"),
    )


@pytest.mark.process
def test_a_typedef_is_its_structure_and_variables_have_theirs(types: bytes) -> None:
    btf = Btf(types)
    assert [btf.structure_of(name) for name in ("transaction_t", "inode", "atomic_t", "nothing")] == [
        "transaction", "inode", "", ""
    ]  # fmt: skip
    assert btf.variables() == {"of_all": ("ext_inode", True), "own": ("transaction", False)}


def look_at_all(data: bytes) -> None:
    btf = Btf(data)
    btf.variables()
    names = ["inode", "ext_inode", "list", "lock"]
    for layout in btf.layouts(names).values():
        assert len(layout.fields) <= 2000
        assert all(field.size > 0 and field.path for field in layout.fields)


@pytest.mark.process
@pytest.mark.hostile
def test_types_of_any_shape_are_read_or_refused(types: bytes) -> None:
    dice = random.Random(1)
    refused = 0
    for _ in range(3000):
        data = bytearray(types)
        for _ in range(dice.randrange(1, 8)):
            at = dice.randrange(len(data))
            data[at] = dice.choice([0, 1, 0x7F, 0xFF, dice.randrange(256)])
        try:
            look_at_all(bytes(data[: dice.choice([len(data), len(data), dice.randrange(len(data))])]))
        except BtfDamaged:
            refused += 1
    assert 0 < refused < 3000


def made(*types: bytes) -> bytes:
    strings = b"\0inode\0a\0b\0"
    body = b"".join(types)
    return struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(body), len(body), len(strings)) + body + strings


def structure(size: int, *members: tuple[int, int, int]) -> bytes:
    head = struct.pack("<III", 1, 4 << 24 | len(members), size)
    return head + b"".join(struct.pack("<III", *member) for member in members)


def alias(of: int) -> bytes:
    return struct.pack("<III", 0, 8 << 24, of)


def array(of: int, count: int) -> bytes:
    return struct.pack("<III", 0, 3 << 24, 0) + struct.pack("<III", of, 0, count)


REFUSED = {
    "a structure in itself": (made(structure(100, (7, 1, 0))), "structures in structures without an end"),
    "a nameless structure in itself": (
        made(structure(100, (0, 1, 0))),
        "structures in structures without an end",
    ),
    "many of itself": (
        made(structure(100, *[(0, 1, 0)] * 60_000)),
        "structures in structures without an end",
    ),
    "names of names": (made(structure(8, (7, 2, 0)), alias(3), alias(2)), "names of names without an end"),
    "an array of everything": (made(structure(8, (7, 2, 0)), array(1, 0xFFFFFFFF)), "larger than any object"),
    "a type that is not there": (made(structure(8, (7, 999, 0))), "refers to one that is not there"),
    "a field far behind": (made(structure(8, (7, 0, 0xFFFFFFFF))), "a field lies behind its structure"),
    "a structure of 4 GiB": (made(structure(0xFFFFFFFF)), "larger than any object"),
    "nothing": (b"", "too short"),
}


@pytest.mark.hostile
@pytest.mark.parametrize(("data", "reason"), REFUSED.values(), ids=REFUSED)
def test_types_without_an_end_are_refused(data: bytes, reason: str) -> None:
    with pytest.raises(BtfDamaged, match=reason):
        look_at_all(data)


EMPTY = {
    "an array of itself": (made(structure(8, (7, 2, 0)), array(2, 4)), {"inode": Layout(8, ())}),
    "no types": (made(), {}),
    "a header and no more": (
        struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, 0, 0xFFFFFFFF, 0xFFFFFFF0, 99),
        {},
    ),
}


@pytest.mark.hostile
@pytest.mark.parametrize(("data", "layouts"), EMPTY.values(), ids=EMPTY)
def test_types_without_a_size_have_no_fields(data: bytes, layouts: dict[str, Layout]) -> None:
    assert Btf(data).layouts(["inode"]) == layouts
