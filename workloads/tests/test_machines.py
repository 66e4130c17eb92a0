# SPDX-License-Identifier: GPL-2.0-or-later
"""Machine models in a description: named, and with numbers of its own."""

from __future__ import annotations

from dataclasses import fields

import pytest

from workloads.catalog import load_catalog
from workloads.errors import BadParam, MachineModelInvalid
from workloads.machines import MachineNumbers, described_machine, machine_model, machine_names

# Of the shipped files: what a change of one number would change.
KEYS = {"one-socket": "39c0c6552d3f1b38", "two-socket": "5575de1a71434f48"}
NUMBERS = {
    "ghz": 3.5, "sockets": 4, "cycles_per_instruction": 0.5, "overlap": 0.25, "atomic_cycles": 20, "l1_bytes": 65536,
    "l1_ways": 16, "l2_bytes": 2097152, "l2_ways": 32, "l2_cycles": 15.5, "shared_cycles": 60, "memory_cycles": 300,
    "transfer_cycles": 90, "far_transfer_cycles": 400, "wake_cycles": 5000, "cpus_per_socket": 8,
}  # fmt: skip


def resolved(machine: object, *cpus: int) -> object:
    asked = {"cpus": list(cpus or (1, 4)), "machine": machine}
    return load_catalog()["showgids"].resolve("smoke", asked, clock="contention")["machine"]


def test_each_number_of_a_machine_is_tried_here() -> None:
    assert set(NUMBERS) == {field.name for field in fields(MachineNumbers)} | {"ghz"}


@pytest.mark.parametrize("name", sorted(NUMBERS))
def test_a_number_may_be_given_as_a_table_or_as_text_and_becomes_part_of_the_case(name: str) -> None:
    value = NUMBERS[name]
    both = {"l1_bytes": {"l1_ways": 16}, "l1_ways": {"l1_bytes": 65536}, "l2_bytes": {}, "l2_ways": {}}.get(
        name, {}
    )
    table = {"base": "two-socket", name: value, **both}
    text = ", ".join(["two-socket", *(f"{key}={number}" for key, number in table.items() if key != "base")])
    case = resolved(table)
    assert resolved(text) == case
    assert f"{name}={value}" in str(case)
    assert str(case).startswith("two-socket, ")
    assert described_machine(case).key != machine_model("two-socket").key
    assert resolved(case) == case, "a case's own text is read back as the same machine"


@pytest.mark.parametrize("name", machine_names())
def test_numbers_that_change_nothing_are_the_named_machine(name: str) -> None:
    own = machine_model(name).numbers
    table = {field.name: getattr(own, field.name) for field in fields(MachineNumbers)}
    assert resolved({"base": name, **table}) == name
    assert resolved({"base": name}) == name
    assert resolved(name) == name


def test_a_named_machines_numbers_never_change() -> None:
    assert {name: machine_model(name).key for name in machine_names()} == KEYS, (
        "results under one name would be compared across the change: give other numbers another name"
    )


def test_the_base_is_one_socket_where_none_is_given() -> None:
    assert resolved({"transfer_cycles": 90}) == "one-socket, transfer_cycles=90"
    assert resolved("transfer_cycles=90") == "one-socket, transfer_cycles=90"
    assert resolved({"transfer_cycles": 90.0}) == "one-socket, transfer_cycles=90"


@pytest.mark.hostile
@pytest.mark.parametrize(
    ("machine", "said"),
    [
        ("mine", "machine: there is no machine model of that name; known are one-socket, two-socket"),
        ({"base": "mine"}, "there is no machine model of that name"),
        ({"base": 3}, "the machine model's base must be the name of a machine"),
        ({"spoons": 1}, "a machine model has no such number; it has base, ghz, atomic_cycles"),
        ({"\x1b[2J": 1}, "a machine model has no such number"),
        ({"sockets": 0}, "sockets must be from 1 to 8"),
        ({"sockets": 9}, "sockets must be from 1 to 8"),
        ({"sockets": 1.5}, "sockets must be a whole number"),
        ({"sockets": "2"}, "sockets must be a number"),
        ({"sockets": True}, "sockets must be a number"),
        ({"cpus_per_socket": -1}, "cpus_per_socket must be from 0 to 64"),
        ({"cpus_per_socket": 65}, "cpus_per_socket must be from 0 to 64"),
        ({"cpus_per_socket": 2.5}, "cpus_per_socket must be a whole number"),
        ({"overlap": float("nan")}, "overlap must be a number"),
        ({"transfer_cycles": float("inf")}, "transfer_cycles must be a number"),
        ({"transfer_cycles": -1}, "transfer_cycles must be from 0"),
        ({"transfer_cycles": 1e9}, "transfer_cycles must be from 0"),
        ({"l1_bytes": 1000}, "no power of two of sets"),
        ({"l2_ways": 3}, "no power of two of sets"),
        ({"ghz": 0}, "ghz must be from 0.1 to 100"),
        ({"ghz": None}, "ghz must be a number"),
        ("one-socket, sockets", "each once"),
        ("one-socket, sockets=2, sockets=3", "each once"),
        ("one-socket, sockets=two", "sockets must be a number"),
        pytest.param("one-socket, sockets=" + "9" * 900, "sockets must be", id="huge"),
        pytest.param("," * 5000, "each once", id="commas"),
        (["one-socket"], "a machine is a name"),
        (7, "a machine is a name"),
        (None, "a machine is a name"),
        (True, "a machine is a name"),
    ],
)
def test_a_machine_that_makes_no_sense_is_refused_by_the_name_of_its_number(
    machine: object, said: str
) -> None:
    with pytest.raises(MachineModelInvalid) as caught:
        described_machine(machine)
    assert said.removeprefix("machine: ") in str(caught.value)
    with pytest.raises(BadParam, match="showgids") as refused:
        resolved(machine)
    assert "machine" in str(refused.value)
    assert str(refused.value).isprintable()


def test_more_cpus_than_the_machine_has_are_refused() -> None:
    table = {"sockets": 2, "cpus_per_socket": 8}
    assert resolved(table, 1, 16) == "one-socket, sockets=2, cpus_per_socket=8"
    with pytest.raises(
        BadParam, match=r"cpus = 17 does not fit the machine, which has 16: sockets = 2, cpus_per_socket = 8"
    ):
        resolved(table, 1, 17)
