# SPDX-License-Identifier: GPL-2.0-or-later
"""A machine's firmware as it asks for its script: which boot waits, then for that one."""

from __future__ import annotations

from lab.targets.netboot.machine import Handout, boot_for, hand_out


def ask(mac: str, address: str) -> Handout | None:
    """Ask as a machine does; None where it is sent to its own disk."""
    boot = boot_for(mac, address)
    return None if boot is None else hand_out(mac, boot, address)
