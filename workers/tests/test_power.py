# SPDX-License-Identifier: GPL-2.0-or-later
"""Power over both languages that BMCs speak, on a domain that stands in for a machine; and BMCs that do not play along."""

from __future__ import annotations

import contextlib
import logging
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from lab.targets.access_schema import IpmiPower, RedfishPower
from workers.errors import BmcFailed, BmcRefused
from workers.power import apart, base
from workers.power.apart import Apart, power_of
from workers.power.ipmi import Ipmi
from workers.tests.liar import Liar
from workers.tests.machines import StandIn, free_port

BMCS = {"ipmi": StandIn.ipmi, "redfish": StandIn.redfish}


@pytest.mark.real
@pytest.mark.parametrize("kind", BMCS)
def test_a_machine_is_turned_on_and_off_and_told_to_boot_from_the_network(
    stand_in: StandIn, kind: str
) -> None:
    power = power_of(stand_in.access(BMCS[kind](stand_in)))
    assert not power.is_on()
    assert not stand_in.boots_from_network()
    power.boot_from_network()
    assert stand_in.boots_from_network()
    power.turn_on()
    assert stand_in.is_on()
    assert power.is_on()
    # Nothing happens to one that is on: it is the same boot.
    boot = stand_in.domain().ID()
    power.turn_on()
    assert stand_in.domain().ID() == boot
    power.turn_off()
    assert not stand_in.is_on()
    power.turn_off()
    assert not power.is_on()


@pytest.mark.real
@pytest.mark.parametrize("kind", BMCS)
def test_a_wrong_password_is_refused_and_told_nowhere(
    stand_in: StandIn, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    power = power_of(stand_in.access(BMCS[kind](stand_in)))
    stand_in.password_file.write_text("not-the-password\n")
    with pytest.raises(BmcRefused, match="operator") as refused:
        power.turn_on()
    assert not refused.value.retry
    assert not stand_in.is_on()
    output = f"{refused.value} {refused.value.detail} {caplog.text}"
    assert "not-the-password" not in output
    assert stand_in.password not in output
    assert str(stand_in.password_file) in output


@pytest.mark.real
def test_redfish_over_tls_is_believed_only_with_a_certificate_we_know(
    stand_in: StandIn, tmp_path: Path
) -> None:
    redfish = stand_in.redfish(certificate=_certificate(tmp_path))
    assert not power_of(stand_in.access(redfish)).is_on()
    with pytest.raises(BmcRefused, match="certificate that is not trusted"):
        power_of(stand_in.access({**redfish, "verify": True})).is_on()
    assert not power_of(stand_in.access({**redfish, "verify": False})).is_on()


@pytest.mark.process
@pytest.mark.parametrize("kind", ["ipmi", "redfish"])
def test_a_bmc_that_is_gone_is_unreachable_and_tried_again(kind: str, secret: Path) -> None:
    with pytest.raises(BmcFailed, match="does not answer") as gone:
        _reach(kind, free_port(socket.SOCK_STREAM), secret).is_on()
    assert gone.value.retry


@pytest.mark.process
def test_a_bmc_whose_name_nobody_knows_is_unreachable(secret: Path) -> None:
    nowhere = IpmiPower(kind="ipmi", address="no-such-bmc.invalid", user="u", password_file=str(secret))
    with pytest.raises(BmcFailed, match=r"no-such-bmc\.invalid"):
        Apart(nowhere).is_on()


@pytest.mark.process
def test_a_bmc_that_sends_a_byte_now_and_then_is_given_up_in_time(
    secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(apart.DEADLINES, "is_on", 3.0)
    # Pytest ends the half hour that the library would wait.
    with Liar(dribbles=True) as bmc, pytest.raises(BmcFailed, match="within 3 s"):
        _redfish(bmc.address, secret).is_on()


@pytest.mark.parametrize("answer", [{"data": [1]}, {"error": "node busy", "code": 0xC0}])
def test_a_session_with_a_bmc_is_closed_whatever_it_said(
    answer: dict[str, Any], secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each order opens one of its own, and a BMC has few."""
    bmc = Mock()
    bmc.raw_command.return_value = answer
    monkeypatch.setattr("workers.power.ipmi.Command", lambda **_: bmc)
    power = Ipmi(IpmiPower(kind="ipmi", address="127.0.0.1:1", user="u", password_file=str(secret)))
    with contextlib.suppress(BmcFailed):
        power.is_on()
    bmc.raw_command.assert_called_once()
    bmc.ipmi_session.logout.assert_called_once()


LIES: dict[str, tuple[dict[str, Any], Callable[[Any], None], type[Exception], str]] = {
    "does nothing": (
        {"obeys": False},
        lambda power: power.turn_on(),
        BmcFailed,
        "took the command to turn the machine on",
    ),
    "stays on": (
        {"obeys": False, "on": True},
        lambda power: power.turn_off(),
        BmcFailed,
        "turn the machine off",
    ),
    "is off again": ({"fails_after": 2}, lambda power: power.turn_on(), BmcFailed, "s later it is off"),
    "forgets": ({"obeys": False}, lambda power: power.boot_from_network(), BmcFailed, "did not set it"),
    "is busy": ({"status": 503}, lambda power: power.is_on(), BmcFailed, "HTTP 503"),
    "forbids": ({"status": 403}, lambda power: power.is_on(), BmcRefused, "HTTP 403"),
    "lacks it": ({"status": 404}, lambda power: power.is_on(), BmcRefused, r"power\.system"),
    "is no BMC": (
        {"body": b"<html>hello</html>"},
        lambda power: power.is_on(),
        BmcRefused,
        "does not answer as Redfish",
    ),
    "is not a machine": (
        {"body": b"{}"},
        lambda power: power.is_on(),
        BmcRefused,
        "does not answer as Redfish",
    ),
    "is a list": ({"body": b"[1]"}, lambda power: power.is_on(), BmcRefused, "does not answer as Redfish"),
}


@pytest.mark.parametrize("lie", LIES)
def test_what_a_bmc_says_is_checked(lie: str, secret: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("STATE_DEADLINE_S", "SETTLE_S", "POLL_S"):
        monkeypatch.setattr(base, name, 0.2)
    how, ask, error, said = LIES[lie]
    with Liar(**how) as bmc, pytest.raises(error, match=said):
        # In this process: the time-outs of another could not be made short.
        ask(apart.backend(_redfish(bmc.address, secret).access))


def test_a_machine_that_is_just_starting_is_turned_off(secret: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers are "PoweringOn" until their firmware is done, which takes minutes."""
    monkeypatch.setattr(base, "POLL_S", 0.2)
    with Liar(on=True, says="PoweringOn") as bmc:
        power = apart.backend(_redfish(bmc.address, secret).access)
        assert power.is_on()
        power.turn_off()
        assert not bmc.on


@pytest.mark.process
def test_a_password_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    missing, empty = tmp_path / "missing", tmp_path / "empty"
    empty.touch()
    with pytest.raises(BmcRefused, match=f'"{missing}": No such file'):
        _reach("redfish", 1, missing).is_on()
    with pytest.raises(BmcRefused, match=f'"{empty}" is empty'):
        _reach("ipmi", 1, empty).is_on()


@pytest.mark.process
def test_the_password_is_in_no_argument_and_no_environment(
    secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    run = subprocess.run

    def watched(command: list[str], **more: Any) -> Any:
        seen.append(f"{command} {more['env']} {more['input']}")
        return run(command, **more)

    monkeypatch.setenv("HTTPS_PROXY", "http://elsewhere.invalid:1")
    monkeypatch.setattr(subprocess, "run", watched)
    with Liar(on=True) as bmc:
        assert _redfish(bmc.address, secret).is_on()
    assert len(seen) == 1
    assert secret.read_text().strip() not in seen[0]
    assert "elsewhere" not in seen[0]


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A password's file."""
    path = tmp_path / "secret"
    path.write_text("open-sesame\nnot this line\n")
    return path


def _redfish(address: str, secret: Path) -> Apart:
    return Apart(
        RedfishPower(kind="redfish", address=address, user="u", password_file=str(secret), verify=False)
    )


def _reach(kind: str, port: int, secret: Path) -> Apart:
    if kind == "redfish":
        return _redfish(f"http://127.0.0.1:{port}", secret)
    return Apart(IpmiPower(kind="ipmi", address=f"127.0.0.1:{port}", user="u", password_file=str(secret)))


def _certificate(directory: Path) -> tuple[Path, Path]:
    certificate, key = directory / "bmc.crt", directory / "bmc.key"
    subprocess.run(
        [
            *(
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-days",
                "2",
                "-subj",
                "/CN=127.0.0.1",
            ),
            *("-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    return certificate, key
