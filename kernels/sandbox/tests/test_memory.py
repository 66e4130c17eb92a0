# SPDX-License-Identifier: GPL-2.0-or-later
"""A builder ends the processes of a killed builder's control group, and leaves those of a living one."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kernels.sandbox.memory import end_leftovers, memory_group

pytestmark = pytest.mark.process


def here() -> int:
    """The namespace of process numbers that this process is in."""
    return Path("/proc/self/ns/pid").stat().st_ino


@contextmanager
def sleeping() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"]) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def gone() -> int:
    """The number of a process that is no more."""
    with subprocess.Popen(["true"]) as process:
        process.wait()
    return process.pid


@pytest.fixture
def parent(tmp_path: Path) -> Iterator[Path]:
    """A control group for the test's own groups: every build on this machine removes what killed builders left in the machine's."""
    with memory_group(64 << 20) as group:
        if not group.procs:
            pytest.skip("no control groups can be made here: run as root")
        folder = Path(group.procs).parent.parent / f"kperflab-tests.{os.getpid()}.{tmp_path.name}"
        folder.mkdir()
        try:
            yield folder
        finally:
            folder.rmdir()


def test_what_a_killed_builder_left_is_killed_and_its_group_removed(parent: Path, gone: int) -> None:
    group = parent / f"kperflab-build.{here()}.{gone}.7"
    group.mkdir()
    with sleeping() as process:
        (group / "cgroup.procs").write_text(str(process.pid))
        assert end_leftovers(parent) == 1
        assert process.wait(10) == -9
    assert not group.exists()


def test_what_a_living_builder_has_there_goes_on(parent: Path) -> None:
    group = parent / f"kperflab-build.{here()}.{os.getpid()}.9999"
    group.mkdir()
    try:
        with sleeping() as process:
            (group / "cgroup.procs").write_text(str(process.pid))
            end_leftovers(parent)
            assert process.poll() is None
    finally:
        group.rmdir()


def test_the_next_build_ends_it(parent: Path, gone: int) -> None:
    group = parent / f"kperflab-build.{here()}.{gone}.8"
    group.mkdir()
    with sleeping() as process:
        (group / "cgroup.procs").write_text(str(process.pid))
        with memory_group(64 << 20, parent):
            assert process.wait(10) == -9


def test_a_builder_of_another_container_is_not_taken_for_one_that_is_gone(parent: Path, gone: int) -> None:
    group = parent / f"kperflab-build.{here() + 1}.{gone}.9"
    group.mkdir()
    try:
        with sleeping() as process:
            (group / "cgroup.procs").write_text(str(process.pid))
            end_leftovers(parent)
            assert process.poll() is None
    finally:
        group.rmdir()
