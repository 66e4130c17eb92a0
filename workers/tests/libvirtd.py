# SPDX-License-Identifier: GPL-2.0-or-later
"""This machine's libvirtd and the QEMU of its guests, for tests that kill them."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from lab.runs.claim import MOST_ATTEMPTS
from workers.errors import TargetVanished

_DEADLINE_S = 20.0

T = TypeVar("T")


def start_libvirtd() -> None:
    """Start it and virtlogd if they are not there, and wait until it answers. One that was just killed may still be a zombie."""
    end = time.monotonic() + _DEADLINE_S
    # A second one ends by itself.
    subprocess.run(["virtlogd", "-d"], capture_output=True)
    while subprocess.run(["virsh", "-c", "qemu:///system", "version"], capture_output=True).returncode:
        assert time.monotonic() < end, "libvirtd does not come back"
        subprocess.run(["libvirtd", "-d"], capture_output=True)
        time.sleep(0.1)


def guests(name: str) -> Iterator[int]:
    """The QEMU processes of guests whose names begin so; `/proc` changes while it is read."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if f"guest={name}".encode() in path.read_bytes():
                yield int(path.parent.name)


def repeated(boot: Callable[[], T]) -> T:
    """Return what a boot gives, repeated where its machine vanished, as a worker has it repeated.

    A guest of several CPUs may crash QEMU 7.2: seen once, in memory_region_dispatch_write, while four CPUs booted.
    """
    for _ in range(MOST_ATTEMPTS - 1):
        with suppress(TargetVanished):
            return boot()
    return boot()
