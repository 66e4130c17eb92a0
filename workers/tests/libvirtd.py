# SPDX-License-Identifier: GPL-2.0-or-later
"""This machine's libvirtd, for tests that kill it."""

from __future__ import annotations

import subprocess
import time

_DEADLINE_S = 20.0


def start_libvirtd() -> None:
    """Start it if it is not there, and wait until it answers. One that was just killed may still be a zombie."""
    end = time.monotonic() + _DEADLINE_S
    while subprocess.run(["virsh", "-c", "qemu:///system", "version"], capture_output=True).returncode:
        assert time.monotonic() < end, "libvirtd does not come back"
        subprocess.run(["libvirtd", "-d"], capture_output=True)
        time.sleep(0.1)
