# SPDX-License-Identifier: GPL-2.0-or-later
"""Shipped durations and deviations, for previews in a lab that has measured nothing yet.

They were taken with debian-6.1 and libvirt guests under emulation, so they give an order of magnitude. Machines of metal
have no such figures: their boots and their noise differ too much from each other.
"""

import os

from lab.models import Target
from lab.targets.drivers import DRIVERS

# The remark of a preview beside every figure that comes from here.
SHIPPED = "estimated from shipped figures, not from this lab"
# CPU seconds of a build of debian-6.1 from nothing, and of a variant over it; measured 2026-11-25 by the compiler front on a busy machine (605,
# and 22 to 25 for one file).
BASE_BUILD_CPU_S = 600.0
VARIANT_BUILD_CPU_S = 23.0
# Wall seconds of a boot of a guest from its claim to its end, but for the time of larger presets: one that also
# runs perf and a second of cyclictest, under TCG on two cores.
BOOT_S = 9.0
# How many times longer a boot takes by the instruction clock: the largest figure of docs/instruction-clock.md.
BY_INSTRUCTIONS = 1.9
# The same where each access of 20 CPUs is recorded and replayed.
BY_CONTENTION = 2.5
# Standard deviation of one boot's median by the wall clock under emulation, from 100 boots each: docs/verdicts.md.
DEVIATIONS = {"showgids": 0.21, "stat-walk": 0.16}


def build_seconds(*, alone: bool, cores: int | None = None) -> float:
    """Return the wall seconds of a build on this machine. alone: from nothing; cores: None for all of them."""
    return (BASE_BUILD_CPU_S if alone else VARIANT_BUILD_CPU_S) / (cores or os.cpu_count() or 1)


def boot_seconds(target: Target, clock: str) -> float | None:
    """Return the wall seconds that a boot takes at least; None for metal."""
    if not DRIVERS[target.driver].estimated:
        return None
    return BOOT_S * {"instructions": BY_INSTRUCTIONS, "contention": BY_CONTENTION}.get(clock, 1)


def boot_deviation(workload: str, target: Target) -> float | None:
    """Return the standard deviation of the log of a boot's median; None for metal.

    A workload without a figure of its own has the largest one.
    """
    if not DRIVERS[target.driver].estimated:
        return None
    return DEVIATIONS.get(workload, max(DEVIATIONS.values()))
