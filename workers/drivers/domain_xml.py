# SPDX-License-Identifier: GPL-2.0-or-later
"""The libvirt domain of one boot: what it needs to run a workload, and no other device.

How the choices were measured: docs/guest.md.
"""

from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

from kernels.architecture import BUILT
from workers.drivers import instruction_machine
from workers.drivers.base import BootRequest, Disk
from workers.drivers.tsc import tsc_khz

QEMU_NAMESPACE = "http://libvirt.org/schemas/domain/qemu/1.0"
PORT_NAME = "kperflab.records"
CMDLINE = (
    f"console={BUILT.console}",
    # A kernel that oopsed measures nothing any more: end at once, by a reset that ends the domain.
    "oops=panic",
    "panic=-1",
    # A guest that has fallen silent is sent an NMI, to show on the console where it was.
    "unknown_nmi_panic",
    # Warnings and worse on the console until the agent turns all on: printing a boot through an emulated UART
    # takes time.
    "quiet",
    "loglevel=5",
    # All boots of a variant at the same addresses, or code layout would differ between them.
    "nokaslr",
    # Nothing to wait for, nothing to test.
    "no_timer_check",
    "cryptomgr.notests",
    "rcupdate.rcu_expedited=1",
)
WALL_CLOCK = ("random.trust_cpu=on",)
# Many virtual CPUs share few real ones, and often stand still: the kernel should neither check for that nor warn of it.
CONTENTION = ("norandmaps", "nowatchdog", "rcupdate.rcu_cpu_stall_suppress=1")
# The emulated TSC is one clock for all CPUs, which the kernel cannot know: it would use the HPET, whose every read is an exit.
EMULATED_TSC = "tsc=reliable"


@dataclass(frozen=True, slots=True)
class Wiring:
    """The driver's additions to a request: the domain's name, its sockets or pipes, the overlay of each disk, and
    where QEMU's plugin writes."""

    name: str
    console: Path
    records: Path
    overlays: tuple[Path, ...]
    calls: Path | None = None


def domain_xml(request: BootRequest, wiring: Wiring) -> str:
    """Return the domain as libvirt takes it."""
    kvm = request.machine.accelerator == "kvm"
    counted = request.machine.clock == "instructions"
    ET.register_namespace("qemu", QEMU_NAMESPACE)
    domain = ET.Element("domain", type="kvm" if kvm else "qemu")
    _text(domain, "name", wiring.name)
    _text(domain, "title", request.name)
    _text(domain, "memory", str(request.machine.memory_mib), unit="MiB")
    _text(domain, "vcpu", str(request.machine.vcpus), placement="static")
    _add_boot(domain, request)
    ET.SubElement(ET.SubElement(domain, "features"), "acpi")
    cpu = ET.SubElement(domain, "cpu", mode="host-passthrough" if kvm else "maximum")
    # One socket, as QEMU's own default: libvirt's would be a socket a CPU.
    ET.SubElement(cpu, "topology", sockets="1", cores=str(request.machine.vcpus), threads="1")
    if counted:
        instruction_machine.add_clock(domain, cpu)
    elif request.machine.clock == "contention":
        instruction_machine.move_words(cpu)
    # A guest that panics resets (panic=-1); it must end, not start again.
    for event in ("on_poweroff", "on_reboot", "on_crash"):
        _text(domain, event, "destroy")
    _add_devices(domain, request, wiring)
    plugin = plugin_argument(request, wiring)
    _add_arguments(
        domain,
        *(instruction_machine.ARGUMENTS if counted else ()),
        *(("-plugin", plugin) if plugin else ()),
    )
    _skip_cpu_check(domain)
    return ET.tostring(domain, encoding="unicode")


def plugin_argument(request: BootRequest, wiring: Wiring) -> str:
    """Return QEMU's -plugin argument, "" without a microscope. In a name each comma is doubled for QEMU."""
    if request.microscope is None:
        return ""
    scope = request.microscope
    files = [("", scope.plugin), ("functions=", scope.functions), ("out=", wiring.calls)]
    if scope.accesses and wiring.calls:
        files.append(("accesses=", wiring.calls.with_name("accesses")))
    return ",".join(f"{key}{str(path).replace(',', ',,')}" for key, path in files)


def _add_boot(domain: ET.Element, request: BootRequest) -> None:
    system = ET.SubElement(domain, "os")
    _text(system, "type", "hvm", arch=BUILT.name, machine=BUILT.machine)
    _text(system, "kernel", str(request.kernel))
    _text(system, "initrd", str(request.initrd))
    _text(system, "cmdline", kernel_cmdline(request))


def kernel_cmdline(request: BootRequest) -> str:
    """Return the machine's arguments, then the request's."""
    counted = request.machine.clock == "instructions"
    words = [*CMDLINE, *(instruction_machine.CMDLINE if counted else WALL_CLOCK)]
    words += CONTENTION if request.machine.clock == "contention" else ()
    if request.machine.accelerator == "tcg":
        words.append(EMULATED_TSC)
        if khz := instruction_machine.TSC_KHZ if counted else tsc_khz():
            words.append(f"tsc_early_khz={khz}")
            if request.hz:
                words.append(f"lpj={khz * 1000 // request.hz}")
    return " ".join((*words, request.cmdline)).strip()


def _add_devices(domain: ET.Element, request: BootRequest, wiring: Wiring) -> None:
    devices = ET.SubElement(domain, "devices")
    for index, (disk, overlay) in enumerate(zip(request.disks, wiring.overlays, strict=True)):
        _add_disk(devices, index, disk, overlay)
    if request.machine.clock == "instructions":
        instruction_machine.add_lines(devices, wiring.console, wiring.records)
    else:
        _add_streams(devices, wiring)
    # libvirt adds these unless told not to.
    ET.SubElement(devices, "controller", type="usb", index="0", model="none")
    ET.SubElement(devices, "memballoon", model="none")
    ET.SubElement(ET.SubElement(devices, "video"), "model", type="none")


def _add_streams(devices: ET.Element, wiring: Wiring) -> None:
    # QEMU connects to us, so that not a byte is written before we listen; a file would go through virtlogd,
    # which cuts it at 2 MB.
    serial = ET.SubElement(devices, "serial", type="unix")
    ET.SubElement(serial, "source", mode="connect", path=str(wiring.console))
    ET.SubElement(ET.SubElement(devices, "controller", type="virtio-serial", index="0", ports="2"), "driver")
    _place(devices[-1], 2)
    channel = ET.SubElement(devices, "channel", type="unix")
    ET.SubElement(channel, "source", mode="connect", path=str(wiring.records))
    ET.SubElement(channel, "target", type="virtio", name=PORT_NAME)


def _add_disk(devices: ET.Element, index: int, disk: Disk, overlay: Path) -> None:
    element = ET.SubElement(devices, "disk", type="file", device="disk")
    # The overlay is thrown away with the run: nothing in it needs to reach a platter.
    ET.SubElement(element, "driver", name="qemu", type="qcow2", cache="unsafe")
    ET.SubElement(element, "source", file=str(overlay))
    backing = ET.SubElement(element, "backingStore", type="file")
    ET.SubElement(backing, "format", type=disk.format)
    ET.SubElement(backing, "source", file=str(disk.path))
    ET.SubElement(backing, "backingStore")
    ET.SubElement(element, "target", dev=f"vd{chr(ord('a') + index)}", bus="virtio")
    _text(element, "serial", disk.serial)
    _place(element, 3 + index)


def _place(device: ET.Element, slot: int) -> None:
    """Put a device on the root bus: libvirt would give each a PCIe port of its own, which the kernel has to scan."""
    ET.SubElement(device, "address", type="pci", domain="0", bus="0", slot=str(slot), function="0")


def _add_arguments(domain: ET.Element, *values: str) -> None:
    """Add QEMU's own arguments in libvirt's syntax."""
    if not values:
        return
    arguments = ET.SubElement(domain, f"{{{QEMU_NAMESPACE}}}commandline")
    for value in values:
        ET.SubElement(arguments, f"{{{QEMU_NAMESPACE}}}arg", value=value)


def _skip_cpu_check(domain: ET.Element) -> None:
    """Remove a capability, so that libvirt asks QEMU two questions about the CPU, not 300, one by one, while the guest waits.

    This saves 0.2 s of each start (libvirt 9.0); CPU models "maximum" and "host-passthrough" do not use the list.
    """
    capabilities = ET.SubElement(domain, f"{{{QEMU_NAMESPACE}}}capabilities")
    ET.SubElement(capabilities, f"{{{QEMU_NAMESPACE}}}del", capability="cpu-unavailable-features")


def _text(parent: ET.Element, tag: str, text: str, **attributes: str) -> None:
    ET.SubElement(parent, tag, attributes).text = text
