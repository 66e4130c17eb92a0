# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kernels.errors import LockBusy
from kernels.files.scratch import locked, patiently, remove_leftovers, remove_tree, scratch
from kernels.sandbox.memory import memory_group

pytestmark = pytest.mark.process


def test_a_lock_that_stays_taken_is_told(tmp_path: Path) -> None:
    waited: list[int] = []
    second = locked(tmp_path / "lock", seconds=0.3, on_wait=lambda: waited.append(1))
    with locked(tmp_path / "lock"), pytest.raises(LockBusy, match="has held lock for"), second:
        pass
    assert waited


def test_a_shared_lock_keeps_only_the_others_out(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    third = locked(lock, seconds=0)
    with locked(lock, shared=True), locked(lock, shared=True, seconds=0), pytest.raises(LockBusy), third:
        pass


def test_a_scratch_directory_in_use_is_no_leftover(tmp_path: Path) -> None:
    with scratch(tmp_path) as own:
        assert remove_leftovers(tmp_path) == 0
        assert own.is_dir()
    assert not own.exists()


def test_a_directory_without_a_lock_is_left_alone_while_it_is_young(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    assert remove_leftovers(tmp_path) == 0
    os.utime(tmp_path / "new", (1, 1))
    assert remove_leftovers(tmp_path) == 1


def test_a_directory_whose_lock_was_not_yet_taken_is_left_alone_while_it_is_young(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / ".lock").touch()
    assert remove_leftovers(tmp_path) == 0
    os.utime(tmp_path / "new", (1, 1))
    assert remove_leftovers(tmp_path) == 1


def test_the_directory_of_a_killed_process_is_a_leftover_at_once(tmp_path: Path) -> None:
    code = f"""
import os, pathlib
from kernels.files.scratch import scratch
with scratch(pathlib.Path({str(tmp_path)!r})):
    os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-c", code], check=False)
    assert len(list(tmp_path.iterdir())) == 1
    assert remove_leftovers(tmp_path) == 1


def test_links_lead_no_removal_outside(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_text("x")
    (tmp_path / "tree" / "deep").mkdir(parents=True)
    (tmp_path / "tree" / "deep" / "link").symlink_to(tmp_path / "kept")
    (tmp_path / "tree" / "deep").chmod(0)
    remove_tree(tmp_path / "tree")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert (tmp_path / "kept" / "file").exists()


def test_work_that_reports_nothing_is_waited_for_with_beats() -> None:
    beaten = threading.Event()
    waited: list[bool] = []
    patiently(lambda: waited.append(beaten.wait(30)), beaten.set)
    assert waited == [True]

    def fail() -> None:
        raise ValueError("from the work")

    with pytest.raises(ValueError, match="from the work"):
        patiently(fail, lambda: None)


def test_without_control_groups_there_is_no_limit_but_no_failure(tmp_path: Path) -> None:
    with memory_group(1 << 30, tmp_path) as group:
        assert group.procs == ""
    assert list(tmp_path.iterdir()) == []


def test_a_group_of_a_dead_process_is_removed(tmp_path: Path) -> None:
    here = Path("/proc/self/ns/pid").stat().st_ino
    (tmp_path / "memory" / f"kperflab-build.{here}.999999999.1").mkdir(parents=True)
    with memory_group(1 << 30, tmp_path):
        pass
    assert list((tmp_path / "memory").iterdir()) == []
