# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from workers.drivers.access import check_own, check_readable, mend_kvm
from workers.drivers.hypervisor import QemuUser
from workers.errors import TargetUnready

STRANGER = QemuUser(uid=54321, gid=54321)


def test_a_closed_directory_is_named_with_the_way_to_open_it(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    (closed / "vmlinux").touch()
    for parent in tmp_path.parents:
        if parent.stat().st_uid == os.getuid() and str(parent).count("/") > 1:
            parent.chmod(0o711)
    tmp_path.chmod(0o711)
    with pytest.raises(TargetUnready, match=rf"chmod o\+x {closed}"):
        check_readable(closed / "vmlinux", STRANGER)
    closed.chmod(0o711)
    check_readable(closed / "vmlinux", STRANGER)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(TargetUnready, match="vmlinux is not there"):
        check_readable(tmp_path / "vmlinux", STRANGER)


def test_ones_own_directories_need_not_be_open_to_others(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    (tmp_path / "vmlinux").touch()
    check_readable(tmp_path / "vmlinux", QemuUser(os.getuid(), os.getgid()))


def test_a_device_that_qemu_may_open_is_left_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    device = tmp_path / "kvm"
    device.touch()
    device.chmod(0o666)
    mend_kvm(STRANGER, device)
    mend_kvm(STRANGER, tmp_path / "none")
    assert not caplog.records


def test_a_device_closed_to_qemu_is_warned_about_or_mended(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    device = tmp_path / "kvm"
    device.touch()
    device.chmod(0o600)
    with caplog.at_level(logging.WARNING):
        mend_kvm(STRANGER, device)
    assert "chgrp kvm" in caplog.text
    assert len(caplog.records) == 1


def test_a_session_daemons_device_is_none_of_our_business(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    device = tmp_path / "kvm"
    device.touch()
    device.chmod(0o000)
    mend_kvm(QemuUser(os.geteuid(), os.getegid()), device)
    assert not caplog.records


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a directory for someone else")
def test_a_directory_for_sockets_made_by_someone_else_is_refused(tmp_path: Path) -> None:
    check_own(tmp_path)
    os.chown(tmp_path, STRANGER.uid, STRANGER.gid)
    with pytest.raises(TargetUnready, match="belongs to another user"):
        check_own(tmp_path)
