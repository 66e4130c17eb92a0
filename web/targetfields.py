# SPDX-License-Identifier: GPL-2.0-or-later
"""The fields of a target's form: what they are called, what they hint at, and where they are shown."""

from dataclasses import dataclass
from typing import Final

from lab.targets.drivers import DRIVERS

_SWITCH: Final = (("", "unchanged"), ("on", "on"), ("off", "off"))


@dataclass(frozen=True, slots=True)
class Field:
    """One input. key: its name, a path in a target with dots; in a console's path, the kind comes in between.

    shown: the class that hides it if a choice above makes it pointless; "" to show it always.
    """

    key: str
    label: str
    hint: str = ""
    example: str = ""
    kind: str = "text"
    choices: tuple[tuple[str, str], ...] = ()
    shown: str = ""
    required: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """Fields that belong together. place: the path of faults that lie in no single field."""

    title: str
    place: str
    fields: tuple[Field, ...]
    hint: str = ""
    shown: str = ""


MACHINE = Group(
    "Machine",
    "",
    (
        Field("name", "Name", "Its queue is named after it: target.NAME.", "box-1", required=True),
        Field(
            "driver",
            "Driver",
            "libvirt on the worker’s host, over the network, or simulated.",
            choices=tuple((kind.name, kind.label) for kind in DRIVERS.values()),
        ),
        Field("group", "Group", "Targets of one group are equal; an experiment may name it.", "none"),
        Field(
            "vcpus",
            "CPUs",
            "For a guest, what the lab gives it; for metal, what the machine has.",
            kind="number",
        ),
        Field("memory_mib", "Memory, MiB", "Likewise.", kind="number"),
        Field("remark", "Remark", "Visible to operators only, such as where it stands.", kind="lines"),
    ),
)
ACCESS = Group(
    "Access",
    "access",
    (
        Field(
            "access.mac",
            "Network card",
            "The MAC address of the card that it boots from.",
            "52:54:00:12:34:56",
        ),
        Field(
            "access.address",
            "Reserved address",
            "The IPv4 address that DHCP reserves for it, if any: the lab then serves no other address.",
            "10.20.0.11",
        ),
        Field(
            "access.fragments", "Config fragments", "Further config fragments that its kernels need.", "metal"
        ),
        Field(
            "access.kexec",
            "kexec",
            "After a successful boot it stays on, and the next kernel starts without the firmware.",
            kind="flag",
        ),
    ),
    shown="for-metal",
)
POWER = Group(
    "Power",
    "access.power",
    (
        Field("access.power.kind", "BMC", choices=(("redfish", "Redfish"), ("ipmi", "IPMI 2.0"))),
        Field("access.power.address", "Address", "Redfish: https://host. IPMI: host or host:port."),
        Field("access.power.user", "User"),
        Field(
            "access.power.password_file",
            "File of its password",
            "On the worker; the first line is the password. The lab stores only the name of the file.",
            "/etc/kperflab/bmc-1",
        ),
        Field(
            "access.power.verify",
            "Certificate",
            "true: check with the system’s CAs; a file: check with this CA; false: accept any certificate.",
            shown="for-redfish",
        ),
        Field(
            "access.power.system",
            "System",
            "Its Id, if the BMC has several.",
            "the only one",
            shown="for-redfish",
        ),
    ),
    shown="for-metal",
)
CONSOLE = Group(
    "Console",
    "access.console",
    (
        Field(
            "access.console.kind",
            "Kind",
            choices=(
                ("none", "none"),
                ("sol", "sol: the BMC’s serial line"),
                ("netconsole", "netconsole: datagrams"),
            ),
        ),
        Field(
            "access.console.sol.line", "Line", "The kernel’s name for it.", "ttyS0,115200n8", shown="for-sol"
        ),
        Field(
            "access.console.sol.address",
            "Its BMC’s address",
            "If power is IPMI, leave these three empty to use its values.",
            "host or host:port",
            shown="for-sol",
        ),
        Field("access.console.sol.user", "User", shown="for-sol"),
        Field("access.console.sol.password_file", "File of its password", shown="for-sol"),
        Field(
            "access.console.netconsole.address",
            "The machine’s IPv4 address",
            example="10.20.0.101",
            shown="for-netconsole",
        ),
        Field(
            "access.console.netconsole.to",
            "The worker’s IPv4 address",
            example="10.20.0.1",
            shown="for-netconsole",
        ),
        Field(
            "access.console.netconsole.port", "Port", example="6666", kind="number", shown="for-netconsole"
        ),
        Field("access.console.netconsole.device", "Its card", example="eth0", shown="for-netconsole"),
    ),
    shown="for-metal",
)
PLAYED = Group(
    "Simulated behaviour",
    "",
    (
        Field(
            "access",
            "Access",
            'JSON, such as {"seconds": 1, "behaviour": {"finishes": 9, "lost": 1}}; with {} every boot succeeds at once.',
            kind="lines",
        ),
    ),
    shown="for-fake",
)
TUNING = Group(
    "Tuning",
    "tuning",
    (
        Field("tuning.governor", "Governor", "The cpufreq governor of every CPU.", "unchanged"),
        Field("tuning.turbo", "Turbo", choices=_SWITCH),
        Field("tuning.smt", "SMT", choices=_SWITCH),
        Field(
            "tuning.hugepages",
            "Huge pages",
            choices=(
                ("", "as they come"),
                ("always", "always"),
                ("madvise", "madvise"),
                ("never", "never"),
            ),
        ),
        Field("tuning.isolcpus", "Isolated CPUs", "CPUs that the scheduler leaves alone.", "2-63"),
        Field("tuning.irq_affinity", "CPUs of interrupts", "They serve them.", "0-1"),
    ),
    hint="A boot whose machine is not tuned like this does not count. A guest’s kernel has neither governor nor turbo.",
)
GROUPS: Final = (MACHINE, ACCESS, POWER, CONSOLE, PLAYED, TUNING)
