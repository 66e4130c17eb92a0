# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from workloads.guest.cpio import Archive


@pytest.fixture
def archive() -> Archive:
    archive = Archive()
    archive.file("/bin/tool", b"#!/bin/sh\necho odd", 0o755)
    archive.link("/bin/alias", "tool")
    archive.file("/etc/empty", b"")
    archive.directory("/tmp", 0o1777)
    return archive


@pytest.mark.process
@pytest.mark.skipif(not shutil.which("cpio"), reason="cpio is not installed")
def test_another_cpio_unpacks_what_we_pack(archive: Archive, tmp_path: Path) -> None:
    subprocess.run(["cpio", "-i", "--quiet"], input=archive.pack(), cwd=tmp_path, check=True)
    assert (tmp_path / "bin/tool").read_bytes() == b"#!/bin/sh\necho odd"
    assert (tmp_path / "bin/tool").stat().st_mode & 0o7777 == 0o755
    assert (tmp_path / "bin/alias").readlink() == Path("tool")
    assert (tmp_path / "etc/empty").read_bytes() == b""


def test_equal_contents_make_equal_bytes_whatever_the_order(archive: Archive) -> None:
    other = Archive()
    other.directory("/tmp", 0o1777)
    other.file("/etc/empty", b"")
    other.link("/bin/alias", "tool")
    other.file("/bin/tool", b"#!/bin/sh\necho odd", 0o755)
    assert archive.pack() == other.pack()


def test_parents_are_made_and_come_before_their_children() -> None:
    archive = Archive()
    archive.file("/a-b", b"")
    archive.file("/a/b/c", b"")
    packed = archive.pack()
    positions = [packed.index(name + b"\0") for name in (b"a", b"a/b", b"a/b/c")]
    assert positions == sorted(positions)


def test_another_archive_can_follow_at_once(archive: Archive) -> None:
    assert len(archive.pack()) % 4 == 0


def test_device_nodes_need_no_privilege() -> None:
    archive = Archive()
    archive.character_device("/dev/console", 5, 1)
    header = archive.pack()[116:]  # the entry of "dev": 110 bytes, its name, padding
    fields = [int(header[6 + 8 * i : 14 + 8 * i], 16) for i in range(13)]
    mode, (major, minor) = fields[1], fields[9:11]
    assert (oct(mode), major, minor) == ("0o20600", 5, 1)
