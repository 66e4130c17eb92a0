# SPDX-License-Identifier: GPL-2.0-or-later
"""The faults by name: the stages of an experiment at which each is worth injecting, and what it needs of the machine.

A campaign's seed draws from this table; a name, once merged, means the same for ever, for campaigns' files hold it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from bench.faults.stages import Stage

# What a fault needs beside the service: disks to fill and a second host; a real kernel and libvirt.
Need = Literal["", "machine", "guests"]
# Whose boots are waited for: any of this host, the other host's, or those of real guests.
Where = Literal["here", "far", "guests"]


@dataclass(frozen=True, slots=True)
class Kind:
    """The stages at which a fault makes sense, and what it needs."""

    stages: tuple[Stage, ...]
    needs: Need = ""
    where: Where = "here"


BUILDING: tuple[Stage, ...] = ("queued", "building", "between")
BOOTING: tuple[Stage, ...] = ("between", "booting", "workload", "recording", "settling")
ANY: tuple[Stage, ...] = ("queued", "building", "between", "booting", "workload", "recording", "settling")
# When artifacts and files go to the store or come from it.
STORED: tuple[Stage, ...] = ("building", "booting", "recording")

KINDS: Mapping[str, Kind] = {
    "kill builds": Kind(BUILDING),
    "kill target": Kind(BOOTING),
    "kill beat": Kind(ANY),
    "kill web": Kind(ANY),
    "kill upkeep": Kind(ANY),
    "kill make": Kind(("building",)),
    "freeze builds": Kind(("building",)),
    "freeze target": Kind(BOOTING),
    "restart redis": Kind(ANY),
    "flush redis": Kind(ANY),
    "restart postgres": Kind(ANY),
    "kill postgres": Kind(ANY),
    "guests panic": Kind(BOOTING),
    "guests hang": Kind(BOOTING),
    "guests reboot": Kind(BOOTING),
    "guests lost": Kind(BOOTING),
    "disk full: objects": Kind(BUILDING, "machine"),
    "disk full: runs": Kind(BOOTING, "machine"),
    "disk full: database": Kind(ANY, "machine"),
    "far clock +5 h": Kind(BOOTING, "machine", "far"),
    "far clock -5 h": Kind(BOOTING, "machine", "far"),
    "far cut, half a lease": Kind(BOOTING, "machine", "far"),
    "far cut, three leases": Kind(BOOTING, "machine", "far"),
    "far kill": Kind(BOOTING, "machine", "far"),
    "far disk, said full": Kind(("booting", "workload", "settling"), "machine", "far"),
    "far disk, said free": Kind(("booting", "workload", "recording"), "machine", "far"),
    "older worker": Kind(("queued", "booting")),
    "postgres fails over": Kind(ANY),
    "store slow": Kind(STORED),
    "store partial": Kind(STORED),
    "store wrong": Kind(STORED),
    "store refuses": Kind(STORED),
    "store lacks": Kind(STORED),
    "libvirt, kill qemu": Kind(("booting", "workload"), "guests", "guests"),
    "libvirt, freeze qemu": Kind(("booting", "workload"), "guests", "guests"),
    "libvirt, kill worker": Kind(("booting", "workload"), "guests", "guests"),
}


def stages_of(only: str = "") -> dict[str, list[str]]:
    """Return the stages of each fault whose name holds one of these, which commas separate."""
    parts = only.split(",")
    return {name: list(kind.stages) for name, kind in KINDS.items() if any(part in name for part in parts)}
