# SPDX-License-Identifier: GPL-2.0-or-later
"""Differences of a machine whose clock counts instructions.

Two boots of one kernel must execute the same instructions, each at the same time of their clock. So nothing may
reach the guest from the host or from the host's own time: no virtio (requests complete when the host gets to it), no
real-time clock, no host's entropy, no identity that is drawn again for each domain.
Source: QEMU's docs/devel/tcg-icount.rst and docs/system/replay.rst.
"""

from pathlib import Path
from xml.etree import ElementTree as ET

from workloads.instruction_clock import SHIFT

RECORDS_LINE = 1
"""The serial line that records take: its bytes leave within the guest's own output instruction."""
TSC_KHZ = 1_000_000
"""Under -icount QEMU's time stamp counter is the clock itself: a tick a nanosecond (cpu_get_tsc, QEMU 7.2)."""
STARTED = 1_700_000_000
"""When the real-time clock says the machine was switched on; the kernel stirs it into its random numbers."""
IDENTITY = "6b706572-666c-4162-8000-000000000001"
ARGUMENTS = (
    # sleep=off: an idle guest's clock leaps to its next timer.
    "-icount", f"shift={SHIFT},sleep=off",
    # libvirt gives each domain an identity of its own, which a kernel with CONFIG_DMI stirs into its random numbers.
    "-uuid", IDENTITY,
)  # fmt: skip
"""QEMU arguments that libvirt 9.0 cannot express."""

CMDLINE = (
    f"kperflab.records=ttyS{RECORDS_LINE}",
    "clocksource=tsc",
    # Without a second clock the kernel cannot correct the counter's rate a second after the start.
    "pmtmr=0",
    # Programs at the same addresses in every process.
    "norandmaps",
)
# Instructions that ask the host for entropy.
_RANDOM_OF_THE_HOST = ("rdrand", "rdseed")
# A repeated string instruction counts once per element. With this promise of fast byte moves the kernel copies
# by bytes, which would count a copied page as 4,096 instructions instead of 512.
_BYTE_MOVES = "erms"


def add_clock(domain: ET.Element, cpu: ET.Element) -> None:
    """Add the machine's clocks, all driven by the instruction clock, and remove CPU features that bypass it."""
    move_words(cpu)
    for feature in _RANDOM_OF_THE_HOST:
        ET.SubElement(cpu, "feature", policy="disable", name=feature)
    clock = ET.SubElement(domain, "clock", offset="absolute", start=str(STARTED))
    # track="guest" is QEMU's -rtc clock=vm.
    ET.SubElement(clock, "timer", name="rtc", track="guest")
    ET.SubElement(clock, "timer", name="hpet", present="no")


def move_words(cpu: ET.Element) -> None:
    """Have the kernel copy by words, in as many instructions as a CPU with fast byte moves takes cycles."""
    ET.SubElement(cpu, "feature", policy="disable", name=_BYTE_MOVES)


def add_lines(devices: ET.Element, console: Path, records: Path) -> None:
    """Add two serial lines into named pipes; streams.Fifo says why not sockets."""
    for port, path in ((0, console), (RECORDS_LINE, records)):
        serial = ET.SubElement(devices, "serial", type="pipe")
        ET.SubElement(serial, "source", path=str(path))
        ET.SubElement(serial, "target", port=str(port))
