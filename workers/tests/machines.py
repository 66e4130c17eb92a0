# SPDX-License-Identifier: GPL-2.0-or-later
"""Machines to test with: a libvirt domain stands in for one, virtualbmc and sushy-emulator for its BMC.

Everything is started for one test on free ports of the loopback, with its own directory, and gone after it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import bcrypt
import libvirt

from lab.targets.access_schema import Access, read_access

ROOT = Path(__file__).resolve().parents[2]
START_DEADLINE_S = 60.0
USER = "operator"

DOMAIN = """
<domain type="qemu" xmlns:qemu="http://libvirt.org/schemas/domain/qemu/1.0">
<name>{name}</name><uuid>{uuid}</uuid><memory unit="MiB">{memory}</memory><vcpu>{vcpus}</vcpu>
<os><type arch="x86_64" machine="q35">hvm</type><boot dev="hd"/><bios useserial="yes"/></os>
<features><acpi/></features><cpu mode="maximum"/>
<on_poweroff>destroy</on_poweroff><on_reboot>restart</on_reboot><on_crash>destroy</on_crash>
<devices>
<interface type="user"><mac address="{mac}"/><model type="virtio"/></interface>
<serial type="unix"><source mode="bind" path="{serial}"/></serial>
<controller type="usb" model="none"/><memballoon model="none"/><video><model type="none"/></video>
</devices>
<qemu:commandline>{arguments}</qemu:commandline>
<qemu:capabilities><qemu:del capability="netdev.json"/></qemu:capabilities>
</domain>
"""


@dataclass
class StandIn:
    """A domain that plays a machine, off at first.

    Its ROM's iPXE fetches bootfile over QEMU's user network, where this host is 10.0.2.2; it boots from the network
    only after a command to its BMC. serial: the socket on which QEMU offers its serial line.
    """

    directory: Path
    bootfile: str = ""
    memory_mib: int = 128
    vcpus: int = 1
    name: str = field(init=False)
    mac: str = field(init=False)
    uuid: str = field(init=False)

    def __post_init__(self) -> None:
        token = secrets.token_hex(4)
        self.name, self.uuid = f"kperflab-standin-{os.getpid()}-{token}", str(uuid.uuid4())
        self.mac = f"52:54:00:{token[0:2]}:{token[2:4]}:{token[4:6]}"
        self.uri = "qemu:///system" if os.geteuid() == 0 else "qemu:///session"
        # QEMU's user makes the socket; a socket's path is short.
        self.serial = Path(f"/tmp/{self.name}") / "serial"
        self.password_file = self.directory / "password"
        self.password = secrets.token_hex(8)
        self._programs: list[subprocess.Popen[str]] = []

    def __enter__(self) -> StandIn:
        self.password_file.write_text(f"{self.password}\n")
        self.serial.parent.mkdir()
        self.serial.parent.chmod(0o777)
        argument = f"netdev.hostnet0.bootfile={self.bootfile}" if self.bootfile else ""
        arguments = "".join(f'<qemu:arg value="{word}"/>' for word in ("-set", argument) if argument)
        self._connection = libvirt.open(self.uri)
        self._connection.defineXML(
            DOMAIN.format(
                name=self.name,
                uuid=self.uuid,
                memory=self.memory_mib,
                vcpus=self.vcpus,
                mac=self.mac,
                serial=self.serial,
                arguments=arguments,
            )
        )
        return self

    def __exit__(self, *_exc: object) -> None:
        for program in self._programs:
            program.kill()
            program.wait()
        self.cut()
        self.domain().undefine()
        self._connection.close()
        for path in self.serial.parent.iterdir():
            path.unlink()
        self.serial.parent.rmdir()

    def domain(self) -> libvirt.virDomain:
        """The domain as libvirt has it."""
        return self._connection.lookupByName(self.name)

    def is_on(self) -> bool:
        """Return whether the machine is really on, whatever a BMC says."""
        return bool(self.domain().isActive())

    def cut(self) -> None:
        """Take its power away."""
        with contextlib.suppress(libvirt.libvirtError):
            self.domain().destroy()

    def boots_from_network(self) -> bool:
        """Return whether its next boot is from the network, as either BMC arranges it."""
        domain = ET.fromstring(self.domain().XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE))
        first = domain.find("os/boot")
        card = domain.find("devices/interface/boot")
        return (first is not None and first.get("dev") == "network") or (
            card is not None and card.get("order") == "1"
        )

    def ipmi(self) -> dict[str, Any]:
        """Start an IPMI BMC; returns `power` of an access. Its Serial over LAN is the domain's line."""
        port = free_port(socket.SOCK_DGRAM)
        program = self._start(
            [
                *(sys.executable, "-m", "workers.tests.bmc"),
                *(self.name, self.uri, str(port), USER, str(self.password_file), str(self.serial)),
            ]
        )
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n", (self.directory / "bmc.log").read_text()
        return {
            "kind": "ipmi",
            "address": f"127.0.0.1:{port}",
            "user": USER,
            "password_file": str(self.password_file),
        }

    def redfish(self, certificate: tuple[Path, Path] | None = None) -> dict[str, Any]:
        """Start a Redfish BMC; returns `power` of an access. certificate: its file and its key's, for https."""
        port = free_port(socket.SOCK_STREAM)
        config = self.directory / "sushy.conf"
        accounts = self.directory / "accounts"
        accounts.write_text(f"{USER}:{_bcrypt(self.password)}\n")
        settings = {
            "SUSHY_EMULATOR_LIBVIRT_URI": self.uri,
            "SUSHY_EMULATOR_AUTH_FILE": str(accounts),
            "SUSHY_EMULATOR_STATE_DIR": str(self.directory),
            "SUSHY_EMULATOR_LISTEN_IP": "127.0.0.1",
            "SUSHY_EMULATOR_LISTEN_PORT": port,
            "SUSHY_EMULATOR_ALLOWED_INSTANCES": [self.uuid],
            "SUSHY_EMULATOR_BOOT_LOADER_MAP": {},
        }
        if certificate:
            settings |= {
                "SUSHY_EMULATOR_SSL_CERT": str(certificate[0]),
                "SUSHY_EMULATOR_SSL_KEY": str(certificate[1]),
            }
        config.write_text("".join(f"{key} = {value!r}\n" for key, value in settings.items()))
        self._start([str(Path(sys.executable).parent / "sushy-emulator"), "--config", str(config)])
        await_true(lambda: _answers(port), f"sushy-emulator: {(self.directory / 'bmc.log')}")
        return {
            "kind": "redfish",
            "address": f"{'https' if certificate else 'http'}://127.0.0.1:{port}",
            "user": USER,
            "password_file": str(self.password_file),
            "system": self.uuid,
            "verify": str(certificate[0]) if certificate else False,
        }

    def access(self, power: dict[str, Any], **more: Any) -> Access:
        """Return the lab's access to it; more: console, fragments."""
        return read_access({"mac": self.mac, "power": power, **more})

    def _start(self, command: list[str]) -> subprocess.Popen[str]:
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "VIRTUALBMC_CONFIG": str(self.directory / "none"),
        }
        with (self.directory / "bmc.log").open("a") as log:
            program = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment, cwd=self.directory
            )
        self._programs.append(program)
        return program


def free_port(kind: socket.SocketKind) -> int:
    """A port of the loopback that nobody has."""
    with socket.socket(type=kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def await_true(holds: Callable[[], bool], what: str, deadline_s: float = START_DEADLINE_S) -> None:
    """Return once it holds; fail after the deadline."""
    end = time.monotonic() + deadline_s
    while not holds():
        assert time.monotonic() < end, f"not within {deadline_s:g} s: {what}"
        time.sleep(0.05)


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def _bcrypt(password: str) -> str:
    return bcrypt.hashpw(password.encode(), bcrypt.gensalt(4)).decode()
