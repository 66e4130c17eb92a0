# SPDX-License-Identifier: GPL-2.0-or-later
"""Check what QEMU's user may open, before libvirt fails at it or is slowed down by it."""

import grp
import logging
import os
import pwd
import stat
from contextlib import suppress
from pathlib import Path

from workers.drivers.hypervisor import QemuUser
from workers.errors import TargetUnready

log = logging.getLogger(__name__)

KVM_DEVICE = Path("/dev/kvm")


def check_readable(path: Path, user: QemuUser) -> None:
    """Raise TargetUnready if QEMU's user cannot reach a file; names the directory to open.

    The file itself need not be readable: libvirt gives it to that user while the guest runs.
    """
    path = path.resolve()
    if not path.is_file():
        raise TargetUnready(f"{path} is not there")
    for directory in reversed(path.parents):
        if not _may(directory, user, stat.S_IXOTH):
            raise TargetUnready(
                f"QEMU runs as uid {user.uid} and may not enter {directory}, where {path.name} is: "
                f"chmod o+x {directory}, or move KPERFLAB_HOME"
            )


def mend_kvm(user: QemuUser, device: Path = KVM_DEVICE) -> None:
    """Let QEMU's user open /dev/kvm if we may change its mode; else warn.

    A device that is there but closed makes libvirt 9.0 probe QEMU again 14 times at every start: 56 s instead of
    half a second, without a word in its log. A session daemon runs as the same user as its QEMU, so it sees the device as QEMU does.
    """
    own_daemon = user.uid == os.geteuid()
    if own_daemon or not device.exists() or _may(device, user, stat.S_IROTH | stat.S_IWOTH):
        return
    with suppress(KeyError, PermissionError):
        os.chown(device, -1, grp.getgrnam("kvm").gr_gid)
        device.chmod(0o660)
    if _may(device, user, stat.S_IROTH | stat.S_IWOTH):
        log.warning(
            "%s was closed to QEMU's user, which makes each guest start 50 s late: gave it to kvm", device
        )
    else:
        log.warning(
            "QEMU's user may not open %s, so each guest starts 50 s late: chgrp kvm %s; chmod 660 %s",
            *[device] * 3,
        )


def check_own(directory: Path) -> None:
    """Raise TargetUnready if a directory for sockets was made by someone else, who could listen in."""
    if directory.stat().st_uid != os.geteuid():
        raise TargetUnready(f"{directory} belongs to another user: remove it, or set XDG_RUNTIME_DIR")


def _may(path: Path, user: QemuUser, others_bits: int) -> bool:
    """Return whether a user has the permissions, given as those of "others"; root has all."""
    status = path.stat()
    if user.uid == 0:
        return True
    if status.st_uid == user.uid:
        wanted = others_bits << 6
    elif status.st_gid in groups_of(user):
        wanted = others_bits << 3
    else:
        wanted = others_bits
    return status.st_mode & wanted == wanted


def groups_of(user: QemuUser) -> set[int]:
    """Return the groups that libvirt gives the process: the user's own groups, and the configured group."""
    try:
        entry = pwd.getpwuid(user.uid)
    except KeyError:
        return {user.gid}
    return {user.gid, *os.getgrouplist(entry.pw_name, entry.pw_gid)}
