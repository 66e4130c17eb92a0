# SPDX-License-Identifier: GPL-2.0-or-later
"""Access and tuning of a machine: errors name the field and the way out."""

from __future__ import annotations

from typing import Any

import pytest

from lab.errors import FieldRefused
from lab.targets.access_schema import host_and_port, read_access, read_tuning

POWER: dict[str, Any] = {
    "kind": "redfish",
    "address": "https://bmc:8443/",
    "user": "root",
    "password_file": "/run/secret",
}
WHOLE: dict[str, Any] = {"mac": "52:54:00:AB:cd:ef", "power": POWER}
IPMI = POWER | {"kind": "ipmi", "address": "bmc"}


def test_a_machine_is_read_with_its_defaults() -> None:
    access = read_access(WHOLE)
    assert (access.mac, access.fragments, access.console.kind) == ("52:54:00:ab:cd:ef", ("metal",), "none")
    assert access.power.address == "https://bmc:8443"
    # What is stored is read back as it is.
    assert read_access(access.model_dump(mode="json")) == access


@pytest.mark.parametrize(
    ("given", "field", "said"),
    [
        ({}, "access.mac", "access.mac is missing"),
        ({"mac": "x"}, "access.mac", "write 52:54:00:12:34:56"),
        ({**WHOLE, "powr": 1}, "access.powr", 'did you mean "power"'),
        ({**WHOLE, "power": {}}, "access.power.kind", "access.power.kind is missing"),
        ({**WHOLE, "power": {"kind": "redfsh"}}, "access.power.kind", 'did you mean "redfish"'),
        ({**WHOLE, "power": POWER | {"password": "x"}}, "access.power.password", "password_file"),
        (
            {**WHOLE, "power": POWER | {"password_file": "x"}},
            "access.power.password_file",
            "not the absolute path",
        ),
        ({**WHOLE, "power": POWER | {"address": "bmc"}}, "access.power.address", "write https://host"),
        (
            {**WHOLE, "power": POWER | {"address": "https://u:p@bmc"}},
            "access.power.address",
            "must not contain a user or a password",
        ),
        ({**WHOLE, "power": POWER | {"address": "https://bmc/x"}}, "access.power.address", "system"),
        ({**WHOLE, "power": POWER | {"address": "http://bmc"}}, "access.power", "in the clear"),
        ({**WHOLE, "power": POWER | {"verify": "ca"}}, "access.power.verify", "absolute path of a CA's file"),
        ({**WHOLE, "power": IPMI | {"address": "bmc:0"}}, "access.power.address", "write host, host:port"),
        ({**WHOLE, "console": {"kind": "sol"}}, "access", "power is not IPMI"),
        ({**WHOLE, "fragments": ["metl"]}, "access.fragments", 'did you mean "metal"'),
    ],
)
def test_what_is_wrong_with_an_access_is_told_by_its_field(
    given: dict[str, Any], field: str, said: str
) -> None:
    with pytest.raises(FieldRefused) as refused:
        read_access(given)
    assert refused.value.field == field
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "given",
    [
        {"governor": "Performance; rm"},
        {"turbo": "no"},
        {"isolcpus": "3-1"},
        {"irq_affinity": "0 panic=1"},
        {"hugepages": "sometimes"},
        {"nosmt": True},
    ],
)
def test_nothing_comes_onto_the_command_line_that_is_no_setting(given: dict[str, Any]) -> None:
    with pytest.raises(FieldRefused) as refused:
        read_tuning(given)
    assert refused.value.field == f"tuning.{next(iter(given))}"


def test_a_bmcs_serial_line_is_reached_as_its_power_or_by_itself() -> None:
    console = {"kind": "sol", "address": "other", "user": "u", "password_file": "/run/other"}
    assert read_access({**WHOLE, "console": console}).sol().address == "other"
    assert read_access({**WHOLE, "power": IPMI, "console": {"kind": "sol"}}).sol().address == "bmc"


@pytest.mark.parametrize(
    ("address", "found"),
    [("bmc", ("bmc", 623)), ("10.0.0.1:6230", ("10.0.0.1", 6230)), ("[fe80::1]:1", ("fe80::1", 1))],
)
def test_hosts_and_ports_are_told_apart(address: str, found: tuple[str, int]) -> None:
    assert host_and_port(address) == found
