# SPDX-License-Identifier: GPL-2.0-or-later
"""Readiness of this process for work: the obstacle, as a line for operators."""

import os
import shutil
from pathlib import Path

from django.conf import settings

from kernels.builds.layers import COLD_BYTES
from lab.leases.version import code_version, other_version

GIB = 1 << 30
# A kernel's objects and artifact; a boot writes a disk, a console and a profile.
BUILD_BYTES, BUILD_SHARE = 5 * GIB, 0.05
BOOT_SHARE = 0.2


def least_free(total: int, *, builds: bool) -> int:
    """Return how many bytes must be free on a disk of this size."""
    wanted = int(settings.DISK_GIB * GIB)
    if builds:
        return wanted or max(BUILD_BYTES, int(total * BUILD_SHARE))
    return int((wanted or BUILD_BYTES) * BOOT_SHARE)


def spare_for_builds(home: Path) -> int:
    """Return how many bytes a build leaves free where it can, so that this host goes on building."""
    return least_free(shutil.disk_usage(home).total, builds=True) + COLD_BYTES


def short_of_disk(home: Path, *, builds: bool) -> str:
    """Return why there is too little disk space; "" if there is enough."""
    usage = shutil.disk_usage(home)
    least = least_free(usage.total, builds=builds)
    if usage.free >= least:
        return ""
    return f"{home} has {usage.free / GIB:.1f} GiB free, {least / GIB:.1f} are needed: free space, expire old runs, or set KPERFLAB_DISK_GIB"


def why_idle(*, builds: bool, lab: str | None = None) -> str:
    """Return why this process takes no work now; "" while it does.

    builds: it builds kernels, which takes more room. lab: the lab's version, asked for unless it is known.
    """
    home = settings.HOME
    if not os.access(home, os.W_OK):
        return f"{home} cannot be written"
    return other_version(code_version(), lab) or short_of_disk(home, builds=builds)
