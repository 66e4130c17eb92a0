# SPDX-License-Identifier: GPL-2.0-or-later
"""The abilities of each driver, declared once: validation, forms, pages, estimates and workers read them here.

A new driver needs an entry here, a module in workers/drivers/, and its construction in workers/bench.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from workloads.instruction_clock import CLOCKS


@dataclass(frozen=True, slots=True)
class DriverKind:
    """One driver, by the name that targets use.

    label: in forms. guest: its kernels run under QEMU on the processors of the worker's own host, so that boots and builds take
    turns, and an accelerator is chosen. clocks: what a case may be measured by. access: whether its targets are reached by nothing,
    by a machine's settings (BMC, network card, console; see access_schema), or by an object that only the driver reads.
    sized: vCPUs and memory are what the lab gives it. estimated: the shipped figures of a boot's time and noise hold for it.
    """

    name: str
    label: str
    guest: bool = False
    clocks: tuple[str, ...] = ("wall",)
    access: Literal["none", "machine", "object"] = "none"
    sized: bool = True
    estimated: bool = True


DRIVERS: Final[Mapping[str, DriverKind]] = {
    kind.name: kind
    for kind in (
        DriverKind("libvirt", "libvirt: a guest", guest=True, clocks=CLOCKS),
        DriverKind("metal", "metal: a physical machine", access="machine", sized=False, estimated=False),
        DriverKind("fake", "fake: plays boots", clocks=("wall", "instructions"), access="object"),
    )
}
MACHINES: Final = tuple(name for name, kind in DRIVERS.items() if kind.access == "machine")
"""Drivers whose targets have a BMC and boot over the network."""


def is_guest(driver: str) -> bool:
    """Return whether kernels of this driver run on the worker's own host; False for a driver that is not known."""
    return driver in DRIVERS and DRIVERS[driver].guest
