# SPDX-License-Identifier: GPL-2.0-or-later
"""Layers and sources of builds: what a clock that was set back, another build or a power cut must not spoil."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from kernels.builds.builder import Builder, Limits
from kernels.builds.front_program import compile_front
from kernels.builds.layers import Layers
from kernels.builds.structures import FinishedBuild
from kernels.errors import DiskFull
from kernels.tests.pretend import PretendKernel
from kernels.tests.synced import inodes_synced

pytestmark = pytest.mark.process


def test_a_clock_that_was_set_back_during_the_base_hides_no_change(
    pretend: PretendKernel, tmp_path: Path
) -> None:
    """Then some of its objects are newer than what any later build writes."""

    def set_back(built: FinishedBuild) -> None:
        if built.objects.upper is None:
            tomorrow = time.time() + 86400
            os.utime(built.objects.lower / "fs/buffer.o", (tomorrow, tomorrow))

    builder = Builder(tmp_path, Limits(seconds=30, memory=1 << 30, cores=2), on_built=set_back)
    builder.build(pretend.request())
    lines: list[str] = []
    revision = pretend.edited("fs/buffer.c", "block * 3", "block * 41")
    builder.build(pretend.request(revision), on_line=lines.append)
    assert "  CC      fs/buffer.o" in lines


def test_sources_are_on_the_disk_before_a_build_can_see_them(
    pretend: PretendKernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that a power cut left empty would be compiled into every later kernel of the tree."""
    layers = Layers(tmp_path)
    place = layers.sources / f"pretend-{pretend.base.tree_id}"
    seen: list[bool] = []
    run = subprocess.run

    def noted(command: list[str], **rest: Any) -> subprocess.CompletedProcess[Any]:
        if command[0] == "sync":
            seen.append(place.exists())
        return run(command, **rest)

    monkeypatch.setattr("subprocess.run", noted)
    with layers.source(pretend.tree, pretend.base.tree_id, lambda: None) as path:
        assert path == place
    assert seen == [False]


def test_a_kept_config_is_on_the_disk(
    pretend: PretendKernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty one would be every later kernel's."""
    synced = inodes_synced(monkeypatch)
    Builder(tmp_path, Limits(seconds=30, memory=1 << 30, cores=2)).key(pretend.request())
    (config,) = (tmp_path / "objects/configs").iterdir()
    assert config.stat().st_ino in synced


def test_a_disk_without_room_for_the_front_is_not_told_as_a_missing_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = tmp_path / "g++"
    said = "fatal error: error writing to main.s: No space left on device"
    compiler.write_text(f'#!/bin/sh\n[ "$1" = --version ] && exit\necho "{said}" >&2\nexit 1\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(DiskFull, match="compiler front"):
        compile_front(tmp_path / "kept")


def test_the_compiled_front_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through an empty one no kernel compiles."""

    def compiled(_program: str, *arguments: str) -> str:
        if "-o" in arguments:
            Path(arguments[arguments.index("-o") + 1]).write_text("compiled")
        return ""

    monkeypatch.setattr("kernels.builds.front_program._run", compiled)
    synced = inodes_synced(monkeypatch)
    assert compile_front(tmp_path).stat().st_ino in synced
