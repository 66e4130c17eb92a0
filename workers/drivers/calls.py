# SPDX-License-Identifier: GPL-2.0-or-later
"""Where QEMU's plugin writes call trees, and how they come to the run's own files.

The directory is the emulator's user's, and with it whoever broke out of a guest: what is in it is taken as data only.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from pathlib import Path

from workers.drivers.hypervisor import QemuUser
from workers.errors import ProfileUnreadable

# workers/microscope/native/plugin.c: MOST_REPORTS files of at most MOST_NODES nodes of 32 bytes.
_MOST_FILES = 64
_MOST_BYTES = (32 << 20) + 4096
_MOST_TOGETHER = 64 << 20
_NAME = re.compile(r"calls\.\d{1,2}")


def own_directory(path: Path, user: QemuUser) -> Path:
    """Make a directory that QEMU's user writes to, and return it."""
    path.mkdir(mode=0o700)
    if user.uid != os.geteuid():
        os.chown(path, user.uid, user.gid)
    return path


def bring_home(written: Path, directory: Path) -> None:
    """Copy the call trees that a boot left into the run's directory.

    Raises ProfileUnreadable for more or larger files than the plugin writes, or anything that is no file.
    """
    names = sorted(path.name for path in written.iterdir() if _NAME.fullmatch(path.name))
    if len(names) > _MOST_FILES:
        raise ProfileUnreadable(f"the emulator left {len(names)} call trees, more than {_MOST_FILES}")
    room = _MOST_TOGETHER
    for name in names:
        descriptor = os.open(written / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as source:
            status = os.fstat(descriptor)
            room -= status.st_size
            if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_BYTES or room < 0:
                raise ProfileUnreadable(f"the emulator's call tree {name} is no file, or too large")
            with (directory / name).open("wb") as target:
                shutil.copyfileobj(source, target)
