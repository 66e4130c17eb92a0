# SPDX-License-Identifier: GPL-2.0-or-later
"""The changes that `bench.layer_kernels` builds: each kind finds its place, and leaves alone what would not compile."""

from __future__ import annotations

import random
import re
import subprocess
from pathlib import Path

import pytest

from bench.build_edits import Edit, commit
from bench.layer_kernels import kinds_of
from bench.tree_changes import KINDS, Files, change, without_effect
from kernels.trees.extract import changed_files
from kernels.trees.git import COMMITTER, git_environment
from kernels.trees.tree import NamedRevision, SourceTree, make_bare

TREE = {
    "fs/Makefile": "obj-y := a.o b.o\nobj-y += sub/\n",
    "fs/a.c": "#include <linux/h.h>\n#include <asm/g.h>\n",
    "fs/b.c": "int b;\n",
    "fs/sub/Makefile": "obj-y := c.o\n",
    "fs/sub/c.c": "int c;\n",
    "include/linux/h.h": "extern int h;\n",
    "include/asm-generic/g.h": "extern int g;\n",
    "arch/x86/lib/Makefile": "obj-y := s.o\n",
    "arch/x86/lib/s.S": ".text\n",
    "arch/x86/kernel/vmlinux.lds.S": "SECTIONS { }\n",
    "lib/gen_crc32table.c": "int main(void)\n{\n\treturn 0;\n}\n",
    "init/Kconfig": "config LOG_BUF_SHIFT\n\tint\n\tdefault 17\n",
}
INPUTS = (
    "  /build/linux/include/linux/h.h \\\n  arch/x86/include/generated/asm/g.h \\\n  lib/crc32table.h \\\n"
)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """Return a small tree, with the objects and commands of its build."""
    make_bare(tmp_path / "tree.git")
    environment = git_environment(COMMITTER)

    def git(*arguments: str) -> str:
        command = ["git", f"--git-dir={tmp_path / 'tree.git'}", *arguments]
        return subprocess.run(
            command, input="", env=environment, check=True, capture_output=True, text=True
        ).stdout.strip()

    empty = git("hash-object", "-t", "tree", "-w", "--stdin")
    tree = SourceTree("small", tmp_path / "tree.git", "")
    nothing = NamedRevision(git("commit-tree", empty, "-m", "nothing"), empty, "nothing")
    base = commit(tree, nothing, Edit("base", {path: text.encode() for path, text in TREE.items()}))
    objects = tmp_path / "obj"
    for source in (path for path in TREE if re.fullmatch(r".*(?:\.c|lib/s\.S)", path)):
        place = objects / source
        place.parent.mkdir(parents=True, exist_ok=True)
        name = f"{source[:-2]}.o"
        text = f"source_{name} := /build/linux/{source}\ndeps_{name} := \\\n"
        (place.parent / f".{place.stem}.o.cmd").write_text(text + INPUTS * (source == "fs/a.c"))
    (objects / "lib/crc32table.h").write_text("/* generated */\n")
    (objects / ".config").write_text("CONFIG_LOG_BUF_SHIFT=17\n")
    return Files(tree, base, objects)


@pytest.mark.process
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_each_kind_of_change_finds_a_place(files: Files, kind: str) -> None:
    assert list(change(files, [kind], random.Random(1))) == [kind]
    patched = commit(files.tree, files.base, Edit(kind, files.changed))
    changed = changed_files(files.tree, files.base.tree_id, patched.tree_id)
    assert {file.path for file in changed} == set(files.changed)
    assert {file.path for file in changed if file.deleted} == {
        path for path, data in files.changed.items() if data is None
    }


@pytest.mark.process
def test_a_renamed_header_is_renamed_for_its_users_too(files: Files) -> None:
    change(files, ["header renamed"], random.Random(1))
    assert files.changed["include/linux/h.h"] is None
    assert files.read("fs/a.c").startswith("#include <linux/h_kp1000.h>\n")


@pytest.mark.process
def test_a_source_that_another_includes_is_not_renamed(files: Files) -> None:
    including = {"fs/b.c": b'#include "a.c"\n', "fs/sub/c.c": b'#include "../b.c"\n#include "c.c"\n'}
    base = commit(files.tree, files.base, Edit("includes", including))
    assert change(Files(files.tree, base, files.objects), ["source renamed"], random.Random(1)) == {}


def test_kernels_have_all_kinds_in_turn() -> None:
    kernels = [kinds_of(number, 7, seed=1) for number in range(2)]
    assert sorted([*kernels[0], *kernels[1]]) == sorted(KINDS)
    assert kinds_of(2, 7, seed=1) == kernels[0]


@pytest.mark.process
def test_a_change_whose_symbol_is_not_in_the_kernel_had_no_effect(files: Files) -> None:
    kinds = ["source added", "assembly", "linker script", "header renamed"]
    places = change(files, kinds, random.Random(1))
    symbols = ["kp_of_the_kernel", "kp_source_1000", "kp_symbol_1002"]
    assert without_effect(kinds, places, symbols) == ["header renamed"]
    assert without_effect(kinds, places, [*symbols, "kp_mark_1003"]) == []
