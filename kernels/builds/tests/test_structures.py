# SPDX-License-Identifier: GPL-2.0-or-later
"""The structures of a finished build come from its own sources by its own commands, and nothing of it changes."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kernels.artifacts.structures import FILE, Cache, StructField, Structures, read_structures
from kernels.builds.builder import Builder
from kernels.builds.layers import Layers, own_directory
from kernels.builds.structures import FinishedBuild, StructureFinder, compiled_in
from kernels.builds.written_types import read_types
from kernels.sandbox.command import OBJECTS, SOURCE, Layer, Limits
from kernels.tests.pretend import FAKELINUX, PretendKernel

HEADER = "struct list { void *next; };\nstruct inode { long i_state; int i_lock; struct list i_lru; };\n"
INODE = """#include "fs.h"
#define KMEM_CACHE(name, flags) make(#name, sizeof(struct name))
void *make(const char *name, unsigned long size);
struct root { struct inode *first; int rwsem; };
struct spinlock { union { int rlock; }; };
struct root own;
struct spinlock inode_hash_lock;
void *inode_init(void) { own.rwsem = inode_hash_lock.rlock; return KMEM_CACHE(inode, 0); }
"""
MOUNT = "struct root;\nstatic struct root *the_root;\nstruct root *get_root(void) { return the_root; }\n"
COMMAND = "cmd_fs/{name}.o := gcc -Wp,-MMD,fs/.{name}.o.d -I{source}/fs -O2 -g1 -DNAME='\"{name}\"' -c -o fs/{name}.o {source}/fs/{name}.c ; ./objtool fs/{name}.o\n\nsource_fs/{name}.o := {source}/fs/{name}.c\n"


@dataclass
class Progress:
    """Keeps what would go to a build's log."""

    lines: list[str] = field(default_factory=list)

    def line(self, text: str) -> None:
        self.lines.append(text)

    def tick(self) -> None:
        pass


class Kernel:
    """The sources and objects of a finished build, in a state root of their own."""

    def __init__(self, home: Path) -> None:
        self.home, self.layers, self.progress = home, Layers(home), Progress()
        self.source, self.objects = home / "linux", own_directory(home / "obj")
        (self.source / "fs").mkdir(parents=True)
        (self.source / "fs/fs.h").write_text(HEADER)
        (self.layers.objects / "base").mkdir(parents=True)
        self.add("inode", INODE)
        self.add("mount", MOUNT)
        self._runs = 0

    def add(self, name: str, text: str, objects: Path | None = None, command: str = COMMAND) -> None:
        (self.source / f"fs/{name}.c").write_text(text)
        folder = (objects or self.objects) / "fs"
        folder.mkdir(exist_ok=True)
        (folder / f".{name}.o.cmd").write_text(command.format(name=name, source=SOURCE))

    def find(self, upper: Path | None = None) -> Structures | None:
        self._runs += 1
        own = own_directory(self.home / f"own{self._runs}")
        finder = StructureFinder(self.layers, Limits(seconds=60, cores=2), self.progress)  # type: ignore[arg-type]
        return finder.of(FinishedBuild(Layer(self.source), Layer(self.objects, upper), "base", own))


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    tmp_path.chmod(0o755)
    return Kernel(tmp_path)


@pytest.mark.process
def test_a_build_tells_the_fields_of_its_caches_and_what_its_pointers_point_to(kernel: Kernel) -> None:
    before = sorted(str(path) for path in kernel.objects.rglob("*"))
    structures = kernel.find()
    assert structures
    assert structures.caches == {"inode": Cache(struct="inode", is_exact=True, file="fs/inode.o")}
    assert structures.structs["inode"].fields == (
        StructField(0, 8, "i_state", "inode"),
        StructField(8, 4, "i_lock", "inode"),
        StructField(16, 8, "i_lru", "inode"),
    )
    assert (structures.pointers, structures.variables) == ({"the_root": "root"}, {"own": "root"})
    assert sorted(str(path) for path in kernel.objects.rglob("*")) == before, (
        "nothing is written among the objects"
    )
    assert "1 slab caches" in kernel.progress.lines[-1]


@pytest.mark.process
def test_a_variant_compiles_again_only_what_its_build_compiled(kernel: Kernel) -> None:
    upper = own_directory(kernel.home / "upper")
    first = kernel.find(upper)
    assert first
    assert first.caches.keys() == {"inode"}, "the base's structures are found when they are first wanted"
    assert kernel.layers.structures("base") is not None
    again = INODE.replace("int rwsem", "int rwsem, iattr_rwsem").replace("(inode, 0)", "(root, 0)")
    kernel.add("inode", again, upper)
    kernel.progress.lines.clear()
    structures = kernel.find(upper)
    assert structures
    assert len(kernel.progress.lines) == 1, "one run, of the variant's own file"
    assert structures.caches.keys() == {"root"}
    assert structures.structs["root"].size == 16
    assert structures.structs["root"].field_at(12) == StructField(12, 4, "iattr_rwsem", "root")
    base = kernel.layers.structures("base")
    assert base is not None
    assert base.structs["root"].field_at(12) is None


@pytest.mark.process
def test_a_cache_that_two_files_create_differently_is_unknown_and_both_structures_are_kept(
    kernel: Kernel,
) -> None:
    other = INODE.replace(
        "return KMEM_CACHE(inode, 0)", 'return kmem_cache_create("inode", sizeof(struct root), 0)'
    ).replace(
        "void *make(",
        "void *kmem_cache_create(const char *name, unsigned long size, int flags);\nvoid *make(",
    )
    kernel.add("other", other)
    structures = kernel.find()
    assert structures
    assert structures.caches == {}
    assert structures.structs.keys() == {"inode", "root"}


@pytest.mark.process
@pytest.mark.hostile
@pytest.mark.parametrize(
    "command",
    [
        "cmd_fs/{name}.o := sleep 0\n\nsource_fs/{name}.o := {source}/fs/{name}.c\n",
        f"cmd_fs/{{name}}.o := rm -rf {OBJECTS}/fs {SOURCE}\n\nsource_fs/{{name}}.o := {{source}}/fs/{{name}}.c\n",
        "cmd_fs/{name}.o := $(yes 'x'); (((\n\nsource_fs/{name}.o := {source}/fs/../../../etc/passwd.c\n",
        "cmd_fs/{name}.o := clang -c {source}/fs/{name}.c\n\nsource_fs/{name}.o := {source}/fs/{name}.c\n",
    ],
    ids=["no compiler", "a command that removes", "no command", "a compiler that is not there"],
)
def test_a_command_of_any_kind_costs_only_names(kernel: Kernel, command: str) -> None:
    kernel.add("inode", INODE, command=command)
    structures = kernel.find()
    assert structures
    assert structures.caches == {}
    assert (kernel.objects / "fs/.inode.o.cmd").is_file()


@pytest.mark.process
@pytest.mark.hostile
def test_what_cannot_be_read_is_a_line_in_the_log(kernel: Kernel) -> None:
    # The results are a link to elsewhere, which nobody follows.
    kernel.add("inode", INODE, command="cmd_fs/{name}.o := rm -f /build/out/structures/pointers && ln -s /etc/passwd /build/out/structures/pointers\n\nsource_fs/{name}.o := {source}/fs/{name}.c\n")  # fmt: skip
    assert kernel.find() is None
    assert "without their fields: pointers cannot be read" in kernel.progress.lines[-1]


def test_an_object_that_a_sweep_left_as_it_is_has_the_types_of_today(tmp_path: Path) -> None:
    """It reads a changed header: a field that no code of it names may have moved."""
    (tmp_path / "fs").mkdir()
    for name in ("fs/.made.o.cmd", "fs/made.o", "fs/left.o"):
        (tmp_path / name).touch()
    assert compiled_in(tmp_path) == {"fs/made.o", "fs/left.o"}


@pytest.mark.hostile
def test_objects_of_odd_names_and_depths_are_not_asked_for(tmp_path: Path) -> None:
    for name in (
        "fs/.a.o.cmd",
        "fs/.-o x.o.cmd",
        "fs/.a b.o.cmd",
        "fs/$(x)/.a.o.cmd",
        "fs/b.o.cmd",
        "fs/.left.o",
        "fs/a.c",
        "-x/.a.o.cmd",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "/".join("d" * 400)).mkdir(parents=True)
    (tmp_path / "fs/loop").symlink_to("..")
    assert compiled_in(tmp_path) == {"fs/a.o"}


@pytest.mark.hostile
@pytest.mark.parametrize(
    "index",
    ["fs/a.o 999999999 999999999", "fs/a.o 1", "fs/a.o -1 4", "<script> 1 1", "fs/a.o 10 0\n" * 9000, "\0"],
)
def test_an_index_of_any_kind_gives_what_is_there(index: str) -> None:
    assert read_types(index, b"KMEM_CACHE(a, 0)" + struct.pack("<H", 0xEB9F), "struct a *b;")["structs"] == {}


@pytest.mark.hostile
@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{", '{"version": 2}', '{"structs": {"<b>": {"size": 1, "file": "a.o", "fields": []}}}',
        '{"structs": {"a": {"size": -1, "file": "a.o", "fields": []}}}',
        '{"structs": {"a": {"size": 1, "file": "a.o", "fields": [[0, 1, "<b>", "a"]]}}}',
        '{"caches": {"a\\u001b[2J": {"struct": "a", "is_exact": true, "file": "a.o"}}}', '{"more": 1}',
    ],
)  # fmt: skip
def test_a_file_that_nobody_of_ours_wrote_names_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    assert read_structures(tmp_path / FILE) is None
    assert read_structures(tmp_path / "nothing") is None


CREATES = "#define KMEM_CACHE(type, flags) #type\nconst char *name = KMEM_CACHE(inode, 0);\n"


@pytest.mark.process
@pytest.mark.parametrize("layered", [True, False], ids=["over its base", "from nothing"])
def test_an_artifact_has_the_structures_of_its_caches(
    pretend: PretendKernel, tmp_path: Path, layered: bool
) -> None:
    files = {"fs/inode.c": (FAKELINUX / "fs/inode.c").read_text() + CREATES}
    tmp_path.chmod(0o755)
    builder = Builder(tmp_path, Limits(seconds=60, memory=1 << 30, cores=2), layered=layered)
    artifact = builder.build(pretend.request(pretend.variant(files)))
    structures = read_structures(artifact.structures)
    assert structures is not None
    assert structures.caches["inode"].file == "fs/inode.o"
    assert [struct_field.path for struct_field in structures.structs["inode"].fields] == ["i_ino", "i_next"]
    assert builder.artifacts.verify(artifact.key) == artifact
