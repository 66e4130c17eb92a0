# SPDX-License-Identifier: GPL-2.0-or-later
"""The metal driver with all that it needs but a machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from lab.models import Netboot, NetbootPiece, Target
from workers.drivers import netboot_streams as posted
from workers.drivers.base import BootRequest, Machine
from workers.drivers.metal import MetalDriver
from workers.tests.pretendmachine import MAC, PretendMachine

RELEASE = "6.1.0-k1"
BYE = b'{"completed":true,"uptime_s":3.0,"clocksource":"tsc"}'


@dataclass
class Bench:
    """A driver, its machine and a request for it."""

    home: Path
    request: BootRequest

    def driver(self, machine: PretendMachine, fetch_s: float = 20, load_s: float = 20) -> MetalDriver:
        return MetalDriver(self.home, lambda _access: machine, fetch_s, load_s)

    def run(
        self, boots: Callable[[PretendMachine], None], fetch_s: float = 20, load_s: float = 20, **request: Any
    ) -> PretendMachine:
        """Boot once and hear it out; the machine must be off and the boot closed, whatever happened."""
        machine = PretendMachine(boots)
        try:
            with self.driver(machine, fetch_s, load_s).boot(replace(self.request, **request)) as session:
                list(session.records(20))
        finally:
            assert not machine.on
            assert not Netboot.objects.filter(closed_at=None).exists()
            assert not NetbootPiece.objects.exists()
        return machine


def metal_bench(home: Path, settings: Any, monkeypatch: pytest.MonkeyPatch, *, kexec: bool = False) -> Bench:
    """A lab with one machine, whose deadlines are short. kexec: whether it goes from kernel to kernel by itself."""
    settings.HOME = home
    settings.NETBOOT_URL = "http://10.0.2.2:8000"
    monkeypatch.setattr("web.views.netboot.HOLD_S", 0.0)
    monkeypatch.setattr(posted, "QUIET_S", 0.2)
    monkeypatch.setattr(posted, "ASK_AGAIN_S", 0.2)
    for module in ("kexec", "metal", "netboot_streams"):
        monkeypatch.setattr(f"workers.drivers.{module}.POLL_S", 0.03)
    password = home / "password"
    password.write_text("secret\n")
    power = {"kind": "ipmi", "address": "127.0.0.1", "user": "operator", "password_file": str(password)}
    access = {"mac": MAC, "power": power, "fragments": [], "kexec": kexec}
    Target.objects.create(name="metal-1", driver="metal", access=access)
    kernel, directory = home / "artifacts" / ("a" * 64), home / "runs" / "1-1"
    for path in (kernel, directory):
        path.mkdir(parents=True)
    (kernel / "bzImage").write_bytes(b"kernel")
    (directory / "initrd").write_bytes(b"initrd")
    return Bench(
        home,
        BootRequest(
            name="a run",
            kernel=kernel / "vmlinux.boot",
            initrd=directory / "initrd",
            cmdline="brd.rd_size=1",
            machine=Machine(2, 512, "none"),
            disks=(),
            release=RELEASE,
            directory=directory,
            boot_deadline_s=20.0,
            silence_deadline_s=20.0,
            target="metal-1",
            access=access,
        ),
    )
