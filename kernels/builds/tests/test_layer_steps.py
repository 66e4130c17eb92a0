# SPDX-License-Identifier: GPL-2.0-or-later
"""Objects that are made again over a layer because a file was added."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kernels.builds import kbuild
from kernels.builds.layer_steps import included_names
from kernels.sandbox.command import OBJECTS, OUT
from kernels.trees.extract import ChangedFile

BLOB = "1" * 40


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (ChangedFile("fs/own.h", "100644", BLOB, added=True), "/own.h\n"),
        (ChangedFile("fs/own.h", "100644", BLOB), ""),
        (ChangedFile("fs/own.h", "", ""), ""),
        (ChangedFile("fs/a b.h", "100644", BLOB, added=True), "/\n"),
        # Whatever a link shows may be found first.
        (ChangedFile("fs/asm", "120000", BLOB, added=True), "/\n"),
        (ChangedFile("fs/asm", "120000", BLOB), "/\n"),
    ],
    ids=["added", "changed", "removed", "an odd name", "a link", "a link that leads elsewhere"],
)
def test_a_file_may_stand_in_for_others_of_its_name(change: ChangedFile, names: str) -> None:
    assert included_names([change]) == names


@pytest.mark.process
def test_all_that_included_such_a_name_is_forgotten(tmp_path: Path) -> None:
    objects, out = tmp_path / "objects", tmp_path / "out"
    inputs = {"fs/inode.o": "fs/own.h", "kernel/bounds.s": "include/own.h", "fs/file.o": "include/other.h"}
    for made, header in inputs.items():
        place = objects / made
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
        (place.parent / f".{place.name}.cmd").write_text(f"deps_{made} := \\\n  /build/linux/{header} \\\n")
    out.mkdir()
    added = out / kbuild.ADDED
    script = kbuild.FORGET_SCRIPT.replace(OBJECTS, str(objects)).replace(OUT, str(out))
    for names, left in (("", set(inputs)), ("/own.h\n", {"fs/file.o"}), ("/\n", set())):
        added.write_text(names)
        subprocess.run(["sh", "-c", "set -e\n" + script], check=True, timeout=30)
        assert {made for made in inputs if (objects / made).exists()} == left
