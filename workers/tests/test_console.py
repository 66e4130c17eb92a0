# SPDX-License-Identifier: GPL-2.0-or-later
"""A machine's console in a file: over its BMC's line, and as datagrams of its kernel."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from lab.targets.access_schema import Access, read_access
from workers.collect.dmesg import scan_console
from workers.power import console as consoles
from workers.power.apart import power_of
from workers.power.console import console_of, console_words
from workers.tests.machines import StandIn, await_true, free_port

PANIC = b"[    1.0] Kernel panic - not syncing: sysrq triggered crash\n"


@pytest.mark.real
def test_what_a_machine_prints_comes_over_its_bmcs_serial_line(stand_in: StandIn, tmp_path: Path) -> None:
    access = stand_in.access(stand_in.ipmi(), console={"kind": "sol"})
    into = tmp_path / "console.log"
    with console_of(access, into) as tap:
        assert tap.problem == ""
        power = power_of(access)
        power.boot_from_network()
        power.turn_on()
        await_true(lambda: b"iPXE" in into.read_bytes(), "the firmware's words")
        power.turn_off()
    assert b"SeaBIOS" in into.read_bytes()
    assert tap.written == into.stat().st_size
    # The line is free again: the next boot gets it.
    with console_of(access, tmp_path / "next.log") as tap:
        assert tap.problem == ""


@pytest.mark.real
def test_a_line_that_is_refused_is_no_reason_to_end(
    stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consoles, "CONNECT_DEADLINE_S", 10.0)
    access = stand_in.access(stand_in.ipmi(), console={"kind": "sol"})
    stand_in.password_file.write_text("wrong\n")
    with console_of(access, tmp_path / "console.log") as tap:
        assert "Incorrect password" in tap.problem
    assert (tmp_path / "console.log").read_bytes() == b""


def test_a_kernels_datagrams_are_kept_from_the_machine_alone(tmp_path: Path) -> None:
    access, into = _netconsole(), tmp_path / "console.log"
    with console_of(access, into) as tap:
        for sender, text in (
            ("127.0.0.2", b"[    0.5] hello\n"),
            ("127.0.0.3", b"lies\n"),
            ("127.0.0.2", PANIC),
        ):
            _send(sender, access, text)
        await_true(lambda: tap.written >= len(PANIC) + 16, "two datagrams")
    assert into.read_bytes() == b"[    0.5] hello\n" + PANIC
    # What kills a machine is found by the eyes that find it in a guest.
    assert [finding.kind for finding in scan_console(into.read_bytes())] == ["panic"]


def test_no_machine_fills_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consoles, "CONSOLE_LIMIT", 1000)
    access, into = _netconsole(), tmp_path / "console.log"
    with console_of(access, into) as tap:
        for _ in range(5):
            _send("127.0.0.2", access, b"x" * 300)
        await_true(lambda: tap.written == 1000, "the limit")
    assert into.stat().st_size == 1000


def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    access = _netconsole()
    with (
        console_of(access, tmp_path / "one") as first,
        console_of(access, tmp_path / "two") as second,
    ):
        assert first.problem == ""
        assert "Address already in use" in second.problem


def test_the_kernel_is_told_where_to_print() -> None:
    port = 6666
    assert console_words(_netconsole(port)) == "netconsole=6666@127.0.0.2/eth0,6666@127.0.0.1/"
    power = {"kind": "ipmi", "address": "bmc", "user": "u", "password_file": "/run/secret"}
    assert console_words(_access({"kind": "sol", "line": "ttyS1,115200"}, power)) == "console=ttyS1,115200"
    assert console_words(_access({"kind": "none"}, power)) == ""


def _netconsole(port: int = 0) -> Access:
    console = {
        "kind": "netconsole",
        "address": "127.0.0.2",
        "to": "127.0.0.1",
        "port": port or free_port(socket.SOCK_DGRAM),
    }
    return _access(console, {"kind": "ipmi", "address": "bmc", "user": "u", "password_file": "/run/secret"})


def _access(console: dict[str, Any], power: dict[str, Any]) -> Access:
    return read_access({"mac": "52:54:00:12:34:56", "power": power, "console": console})


def _send(sender: str, access: Access, text: bytes) -> None:
    assert access.console.kind == "netconsole"
    with socket.socket(type=socket.SOCK_DGRAM) as endpoint:
        endpoint.bind((sender, 0))
        endpoint.sendto(text, (access.console.to, access.console.port))
