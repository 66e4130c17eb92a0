# SPDX-License-Identifier: GPL-2.0-or-later
"""The state of the host while a guest ran: its load, and the time that its own host took from it."""

import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Moment:
    """The host's load (1 minute), CPU clocks (ticks since boot) and throttlings at one time."""

    load: float
    stolen: int
    busy_and_idle: int
    throttlings: int = 0


def take_moment() -> Moment:
    """Return the present moment. Source of the fields: proc(5), /proc/stat, "cpu"."""
    with Path("/proc/stat").open() as stat:
        # user nice system idle iowait irq softirq steal; guest time is within user
        ticks = [int(field) for field in stat.readline().split()[1:9]]
    return Moment(os.getloadavg()[0], ticks[7], sum(ticks), _throttlings())


def _throttlings() -> int:
    """Return how often a core was slowed down for its heat since boot; 0 where the kernel does not count.

    Source: Documentation/ABI/testing/sysfs-devices-system-cpu, thermal_throttle.
    """
    counts = Path("/sys/devices/system/cpu").glob("cpu[0-9]*/thermal_throttle/core_throttle_count")
    return sum(int(count.read_text()) for count in counts)


def host_facts() -> dict[str, Any]:
    """Return the facts that do not change while a guest runs."""
    return {
        "host_kernel": platform.release(),
        "host_cpu": cpu_model(),
        "host_cpus": os.cpu_count(),
    }


def change(before: Moment, after: Moment) -> dict[str, Any]:
    """Load on both sides; between them the share of CPU time that was stolen (0 to 1), and throttlings."""
    spent = after.busy_and_idle - before.busy_and_idle
    return {
        "load_before": before.load,
        "load_after": after.load,
        "steal_share": (after.stolen - before.stolen) / spent if spent > 0 else 0.0,
        "throttled": after.throttlings - before.throttlings,
    }


def cpu_model() -> str:
    """Return the processor's name as the kernel reports it."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
