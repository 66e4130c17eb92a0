# SPDX-License-Identifier: GPL-2.0-or-later
"""What the host was like while a guest ran: its load, and the time that its own host took from it."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Moment:
    """The host's load (1 minute) and CPU clocks (ticks since boot) at one time."""

    load: float
    stolen: int
    busy_and_idle: int


def take_moment() -> Moment:
    """Now. Source of the fields: proc(5), /proc/stat, "cpu"."""
    with Path("/proc/stat").open() as stat:
        # user nice system idle iowait irq softirq steal; guest time is within user
        ticks = [int(field) for field in stat.readline().split()[1:9]]
    return Moment(os.getloadavg()[0], ticks[7], sum(ticks))


def host_facts() -> dict[str, Any]:
    """What does not change while a guest runs."""
    return {
        "host_kernel": platform.release(),
        "host_cpu": cpu_model(),
        "host_cpus": os.cpu_count(),
    }


def change(before: Moment, after: Moment) -> dict[str, Any]:
    """Load on both sides, and the share of CPU time that was stolen between them (0 to 1)."""
    spent = after.busy_and_idle - before.busy_and_idle
    return {
        "load_before": before.load,
        "load_after": after.load,
        "steal_share": (after.stolen - before.stolen) / spent if spent > 0 else 0.0,
    }


def cpu_model() -> str:
    """The processor's name as the kernel tells it."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
