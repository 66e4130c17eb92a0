# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from workloads.errors import GuestNotMade
from workloads.guest.plan import DiskShape
from workloads.image import build_image, image_bytes, inode_count

pytestmark = pytest.mark.process

SHAPE = DiskShape("stat-tree", 2, 3, 40)


def ask(image: Path, question: str) -> str:
    done = subprocess.run(
        ["/usr/sbin/debugfs", "-R", question, str(image)], capture_output=True, text=True, check=True
    )
    return done.stdout


def test_a_shape_gives_the_same_bytes_whenever_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = build_image(SHAPE, tmp_path / "a")
    # The clock of another day, and another zone, must not show.
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1")
    second = build_image(SHAPE, tmp_path / "b")
    assert first.name == second.name
    assert first.read_bytes() == second.read_bytes()


def test_an_image_holds_each_threads_own_tree(tmp_path: Path) -> None:
    image = build_image(SHAPE, tmp_path)
    assert "Type: regular" in ask(image, "stat /t1/d2/f39")
    assert "File not found" not in ask(image, "stat /t0/d0/f0")
    assert ask(image, "stat /t1/d2/f40").strip() == ""
    assert ask(image, "stat /t2").strip() == ""


def test_large_directories_are_indexed_as_the_kernel_would_have_them(tmp_path: Path) -> None:
    image = build_image(DiskShape("stat-tree", 1, 1, 600), tmp_path)
    assert "Number of entries (count)" in ask(image, "htree_dump /t0/d0")


def test_an_image_is_made_once_and_never_written_again(tmp_path: Path) -> None:
    image = build_image(SHAPE, tmp_path)
    before = image.stat()
    assert build_image(SHAPE, tmp_path).stat().st_mtime_ns == before.st_mtime_ns
    assert before.st_mode & 0o222 == 0
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("making-")] == []


def test_half_an_image_of_a_killed_worker_goes_when_the_image_is_made(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "debugfs").write_text("#!/bin/sh\nexec sleep 60\n")
    (tools / "debugfs").chmod(0o755)
    make = f"from workloads.image import *; build_image({SHAPE!r}, Path({str(tmp_path)!r}))"
    killed = subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"from pathlib import Path; from workloads.guest.plan import DiskShape; {make}",
        ],
        env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"},
        start_new_session=True,
    )
    for _ in range(300):
        if list(tmp_path.glob("making-*/image")):
            break
        time.sleep(0.1)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    assert len(list(tmp_path.glob("making-*"))) == 1
    build_image(SHAPE, tmp_path)
    assert list(tmp_path.glob("making-*")) == []


def test_the_mails_tree_gets_the_mails_number_of_inodes() -> None:
    seed = DiskShape("stat-tree", 20, 1000, 1000)
    assert inode_count(seed) == 24_000_000
    assert image_bytes(seed) > 24_000_000 * 256


def test_a_shape_without_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(GuestNotMade, match="at least one thread, directory and file"):
        build_image(DiskShape("stat-tree", 1, 0, 5), tmp_path)


def test_a_full_disk_is_told_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(GuestNotMade, match="no room for the 512×100000×100000 disk"):
        build_image(DiskShape("stat-tree", 512, 100_000, 100_000), tmp_path)
    assert list(tmp_path.glob("*.ext4")) == []


def test_a_tool_that_fails_leaves_no_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "debugfs").write_text("#!/bin/sh\nexit 0\n")  # as debugfs ends when its commands fail
    (tools / "debugfs").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    with pytest.raises(GuestNotMade, match="holds 11 inodes instead of"):
        build_image(SHAPE, tmp_path / "images")
    assert list((tmp_path / "images").glob("*.ext4")) == []
