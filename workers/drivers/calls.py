# SPDX-License-Identifier: GPL-2.0-or-later
"""The directory where QEMU's plugin writes call trees and accesses, and their way to the run's files.

The directory belongs to the emulator's user, so a guest that escaped can write to it: its contents are treated as data only.
"""

import os
import re
import shutil
import stat
from pathlib import Path
from typing import BinaryIO

from workers.drivers.hypervisor import QemuUser
from workers.errors import BootDiscarded, ProfileUnreadable

# workers/microscope/native/: plugin.c's MOST_REPORTS call trees of at most MOST_NODES nodes of 32 bytes, and for each of
# trace.h's MOST_TRACED CPUs a file of accesses, MOST_BYTES of them together with the last buffer of each CPU.
_MOST_FILES = 64 + 64 * 64
_MOST_BYTES = 320 << 20
_CHUNK = 1 << 20
# What one whole call tree takes.
_LEAST_FREE = 32 << 20
_NAME = re.compile(r"calls\.\d{1,2}|accesses\.\d{1,2}\.\d{1,2}")


def own_directory(path: Path, user: QemuUser) -> Path:
    """Make a directory that QEMU's user writes to, and return it."""
    path.mkdir(mode=0o700)
    if user.uid != os.geteuid():
        os.chown(path, user.uid, user.gid)
    return path


def bring_home(written: Path, directory: Path) -> None:
    """Copy the call trees and accesses that a boot left into the run's directory.

    Raises ProfileUnreadable for more or larger files than the plugin writes, or anything that is not a file; BootDiscarded.
    """
    try:
        _bring_home(written, directory)
    except OSError as exc:
        for path in (*directory.glob("calls.*"), *directory.glob("accesses.*")):
            path.unlink(missing_ok=True)
        raise BootDiscarded(
            f"what the microscope left cannot be copied to {directory}: {exc.strerror}"
        ) from exc


def _bring_home(written: Path, directory: Path) -> None:
    names = sorted(path.name for path in written.iterdir() if _NAME.fullmatch(path.name))
    if len(names) > _MOST_FILES:
        raise ProfileUnreadable(f"the emulator left {len(names)} files, more than {_MOST_FILES}")
    # The plugin removes what it cannot write whole.
    if not any(name.startswith("calls.") for name in names) and shutil.disk_usage(written).free < _LEAST_FREE:
        raise BootDiscarded(f"the emulator left no call tree, and the disk of {written} is full")
    room = _MOST_BYTES
    for name in names:
        with _opened(written / name) as source, (directory / name).open("wb") as target:
            room -= (size := os.fstat(source.fileno()).st_size)
            if room < 0:
                raise ProfileUnreadable(
                    f"the emulator left more than {_MOST_BYTES >> 20} MiB of call trees and accesses"
                )
            # A process that can write to the file can make it grow meanwhile.
            while size and (data := source.read(min(size, _CHUNK))):
                size -= target.write(data)


def _opened(path: Path) -> BinaryIO:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as exc:
        raise ProfileUnreadable(f"the emulator's {path.name} cannot be read: {exc.strerror}") from exc
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ProfileUnreadable(f"the emulator's {path.name} is not a file")
    return os.fdopen(descriptor, "rb")
