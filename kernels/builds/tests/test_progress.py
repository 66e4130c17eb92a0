# SPDX-License-Identifier: GPL-2.0-or-later
"""Expect as many steps of a build as known: from the last one, and from the objects that a variant compiles again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kernels.builds.layer_steps import changed_inputs, steps_over_layer
from kernels.builds.progress import BuildProgress

STEP = "  CC      fs/inode.o"


@pytest.fixture
def objects(tmp_path: Path) -> Path:
    """Three objects; two of them include fs.h, one asks for CONFIG_SMP."""
    place = tmp_path / "obj"
    (place / "fs").mkdir(parents=True)
    inputs = {
        "inode": "/build/linux/fs/inode.c /build/linux/include/linux/fs.h",
        "dcache": "/build/linux/fs/dcache.c \\\n  /build/linux/include/linux/fs.h \\\n",
        "sched": "/build/linux/kernel/sched.c $(wildcard include/config/SMP) ",
    }
    for name, text in inputs.items():
        (place / "fs" / f".{name}.o.cmd").write_text(text)
    return place


@pytest.mark.parametrize(
    ("paths", "config", "steps"),
    [
        ((), "CONFIG_A=y", 0),
        (("fs/inode.c",), "CONFIG_A=y", 1),
        (("include/linux/fs.h",), "CONFIG_A=y", 2),
        (("include/linux/fs.h", "kernel/sched.c"), "CONFIG_A=y", 3),
        (("include/linux/fs",), "CONFIG_A=y", 0),
        (("Documentation/index.rst",), "CONFIG_A=y", 0),
        ((), "CONFIG_A=y\nCONFIG_SMP=y", 1),
        ((), "CONFIG_A=y\n# CONFIG_SMP is not set", 1),
        ((), "CONFIG_A=y\nCONFIG_SM=y", 0),
        (("fs/inode.c",), "CONFIG_A=y\nCONFIG_SMP=m", 2),
    ],
)
def test_a_variant_compiles_what_its_changes_are_inputs_of(
    objects: Path, paths: tuple[str, ...], config: str, steps: int
) -> None:
    assert steps_over_layer(objects, changed_inputs(paths, config, "CONFIG_A=y")) == steps


@pytest.mark.hostile
@pytest.mark.parametrize("kind", ["link", "fifo", "folder", "loop", "unreadable", "folder link"])
def test_what_a_build_left_among_its_objects_neither_hangs_nor_leads_out(
    objects: Path, tmp_path: Path, kind: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / ".secret.o.cmd").write_text("/build/linux/fs/inode.c")
    planted = objects / ".planted.o.cmd"
    if kind == "link":
        planted.symlink_to(outside / ".secret.o.cmd")
    elif kind == "fifo":
        os.mkfifo(planted)
    elif kind == "folder":
        planted.mkdir()
    elif kind == "loop":
        planted.symlink_to(planted)
    elif kind == "folder link":
        (objects / "more").symlink_to(outside)
    else:
        planted.write_bytes(b"\0\xff" * 5000)
    assert steps_over_layer(objects, changed_inputs(("fs/inode.c",), "", "")) == 1


def test_the_steps_of_the_last_build_are_expected_of_the_next(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    for again in (3, 40):
        seen.clear()
        progress = BuildProgress(tmp_path, lambda line: None, lambda *counts: seen.append(counts))
        with progress.building(tmp_path / "log", "layer", guess=50, counted=again):
            progress.tick()
            for _ in range(again + 7):
                progress.line(STEP)
            progress.succeeded()
        assert seen[-1] == (again + 7, again + 7)
    assert seen[0] == (0, 47), "the 40 that are counted and the 7 others of the last build"


def test_the_base_that_a_variant_lacks_is_part_of_its_progress(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    progress = BuildProgress(tmp_path / "m", lambda line: None, lambda *counts: seen.append(counts))
    progress.ahead = 10
    with progress.building(tmp_path / "log", "cold", guess=30):
        for _ in range(30):
            progress.line(STEP)
        progress.tick()
        progress.succeeded()
    progress.ahead = 0
    with progress.building(tmp_path / "log", "layer", guess=10):
        progress.line(STEP)
        progress.tick()
    assert seen == [(30, 40), (30, 40), (31, 40)]


def test_an_object_that_the_sweep_compiled_is_one_step(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    progress = BuildProgress(tmp_path / "m", lambda line: None, lambda *counts: seen.append(counts))
    with progress.building(tmp_path / "log", "layer", guess=2):
        for line in ("  READY   fs/inode.o", STEP, "  CC      fs/dcache.o"):
            progress.line(line)
        progress.tick()
    assert seen == [(2, 2)]
