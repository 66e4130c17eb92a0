# SPDX-License-Identifier: GPL-2.0-or-later
"""A golden image where there are no disks: packed with the plan, and copied by the guest to its ramdisk."""

from pathlib import Path

from workloads.errors import CaseRejected

OTHERS_MIB = 128
"""What kernel, user space and caches need beside the disk."""


def ramdisk_option(image: Path) -> str:
    """The kernel argument that makes room for an image in /dev/ram0. brd takes pages as they are written."""
    return f"brd.rd_size={-(-image.stat().st_size // 1024)}"


def check_memory(image: Path, memory_mib: int) -> None:
    """Raise CaseRejected if a guest of that memory cannot unpack an image and copy it to a ramdisk.

    Three times its size: what is unpacked may fill half of the memory that the initrd leaves (a tmpfs's limit).
    """
    size_mib = -(-image.stat().st_size // (1 << 20))
    need = 3 * size_mib + OTHERS_MIB
    if need > memory_mib:
        raise CaseRejected(
            f"a disk of {size_mib} MiB does not fit into {memory_mib} MiB of memory, where it is kept on metal and under "
            f"the instruction clock: give the target {need} MiB, take fewer files, or a guest and the wall clock"
        )
