# SPDX-License-Identifier: GPL-2.0-or-later
"""The machines that recorded accesses can be replayed on: numbers, each with its source.

The known machines are files in machines/; a description may give its own numbers, as a table or as text:

    machine = { base = "two-socket", cpus_per_socket = 8, transfer_cycles = 90 }
    machine = "two-socket, cpus_per_socket=8, transfer_cycles=90"

docs/contention.md explains the numbers.
"""

from __future__ import annotations

import hashlib
import math
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from workloads.errors import MachineModelInvalid

_FILES = Path(__file__).parent / "machines"
_WHOLE = ("sockets", "cpus_per_socket", "l1_bytes", "l1_ways", "l2_bytes", "l2_ways")
_LINE = 64
# As in native/replay/machine.cc: name → least, most. Cycles not named here are 0 to 1,000,000.
_BOUNDS = {
    "sockets": (1, 8),
    "cpus_per_socket": (0, 64),
    "cycles_per_instruction": (0.05, 100),
    "overlap": (0, 1),
    "l1_bytes": (_LINE, 16 << 20),
    "l1_ways": (1, 64),
    "l2_bytes": (_LINE, 16 << 20),
    "l2_ways": (1, 64),
}
_CYCLES = (0, 1_000_000)
# Characters of a machine as text: enough for all numbers with all their digits.
_LONGEST = 1000
# The numbers that the sensitivity table halves and doubles.
LATENCIES = (
    "atomic_cycles", "l2_cycles", "shared_cycles", "memory_cycles", "transfer_cycles", "far_transfer_cycles", "wake_cycles",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class MachineNumbers:
    """The numbers of a machine that the replay needs; latencies in cycles, overlap the share of them that is hidden.

    cpus_per_socket: 0 if the CPUs are spread evenly over the sockets.
    """

    sockets: int
    cycles_per_instruction: float
    overlap: float
    atomic_cycles: float
    l1_bytes: int
    l1_ways: int
    l2_bytes: int
    l2_ways: int
    l2_cycles: float
    shared_cycles: float
    memory_cycles: float
    transfer_cycles: float
    far_transfer_cycles: float
    wake_cycles: float
    cpus_per_socket: int = 0

    def lines(self) -> str:
        """Return the numbers as the replay program reads them; a model's key is a hash of this text."""
        names = (
            field.name for field in fields(self) if field.name != "cpus_per_socket" or self.cpus_per_socket
        )
        return "".join(f"{name}={getattr(self, name):.17g}\n" for name in names)


@dataclass(frozen=True, slots=True)
class MachineModel:
    """A machine. ghz: to convert cycles to nanoseconds. sources: the source of each number; empty for a user's own numbers."""

    name: str
    title: str
    ghz: float
    numbers: MachineNumbers
    sources: Mapping[str, str]

    @property
    def key(self) -> str:
        """Return the model's key: results of two models with different keys are never compared."""
        return hashlib.sha256(f"{self.ghz:.17g}\n{self.numbers.lines()}".encode()).hexdigest()[:16]

    def scaled(self, factor: float, *names: str) -> MachineModel:
        """Return the machine with the named latencies, or all, multiplied by a factor. Raises MachineModelInvalid."""
        changed = {name: factor * getattr(self.numbers, name) for name in names or LATENCIES}
        _check(changed)
        return replace(
            self,
            name=f"{self.name}, {' and '.join(names) or 'latencies'} x {factor:g}",
            numbers=replace(self.numbers, **changed),
        )


@cache
def machine_names() -> tuple[str, ...]:
    """Return the names of the machines that we know."""
    return tuple(sorted(path.stem for path in _FILES.glob("*.toml")))


@cache
def machine_model(name: str) -> MachineModel:
    """Return a machine by its name. Raises MachineModelInvalid."""
    if name not in machine_names():
        raise MachineModelInvalid(
            f"there is no machine model of that name; known are {', '.join(machine_names())}"
        )
    data = tomllib.loads((_FILES / f"{name}.toml").read_text())
    return _model(name, data)


def own_machine(numbers: Mapping[str, object], base: str = "one-socket") -> MachineModel:
    """Return a machine with some numbers (of MachineNumbers, or "ghz") in place of the base's. Raises MachineModelInvalid."""
    known = machine_model(base)
    unknown = set(numbers) - {field.name for field in fields(MachineNumbers)} - {"ghz"}
    if unknown:
        names = ", ".join(sorted(field.name for field in fields(MachineNumbers)))
        raise MachineModelInvalid(f"a machine model has no such number; it has base, ghz, {names}")
    _check(numbers)
    changes: dict[str, Any] = dict(numbers)
    ghz = float(changes.pop("ghz", known.ghz))
    model = replace(known, ghz=ghz, numbers=replace(known.numbers, **changes))
    _check_caches(model.numbers)
    if model.key == known.key:
        return known
    return replace(model, name=_written(model, known), sources={})


def described_machine(value: object) -> MachineModel:
    """Return the machine that a description gives: a name, a table of numbers, or both as text. Raises MachineModelInvalid."""
    if isinstance(value, str):
        value = _table(value)
    if not isinstance(value, Mapping):
        raise MachineModelInvalid(
            f"a machine is a name ({', '.join(machine_names())}) or a table of numbers, such as {{ sockets = 2 }}"
        )
    numbers = {str(name): number for name, number in value.items()}
    base = numbers.pop("base", "one-socket")
    if not isinstance(base, str):
        raise MachineModelInvalid("the machine model's base must be the name of a machine")
    return own_machine(numbers, base)


def _table(text: str) -> dict[str, object]:
    """Read "NAME, NUMBER=VALUE, …"; the name may be left out."""
    table: dict[str, object] = {}
    for place, part in enumerate(text[:_LONGEST].split(",")):
        name, equals, value = (word.strip() for word in part.partition("="))
        if not equals and place == 0:
            table["base"] = name
        elif not equals or name in table:
            raise MachineModelInvalid(
                "a machine as text is a name and numbers, each once: one-socket, sockets=2, transfer_cycles=90"
            )
        else:
            table[name] = _number(value)
    return table


def _number(text: str) -> object:
    """Return a number; other text is returned unchanged, and is later refused with the number's name."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


def _written(model: MachineModel, base: MachineModel) -> str:
    """Return a machine as text: the base, then each number that differs from the base, in a fixed order."""
    numbers = [
        (field.name, getattr(model.numbers, field.name), getattr(base.numbers, field.name))
        for field in fields(MachineNumbers)
    ]
    differ = [(name, own) for name, own, theirs in [("ghz", model.ghz, base.ghz), *numbers] if own != theirs]
    return ", ".join(
        [
            base.name,
            *(
                f"{name}={value:g}" if float(f"{value:g}") == value else f"{name}={value!r}"
                for name, value in differ
            ),
        ]
    )


def _model(name: str, data: dict[str, Any]) -> MachineModel:
    _check(data["numbers"])
    model = MachineModel(name, data["title"], data["ghz"], MachineNumbers(**data["numbers"]), data["sources"])
    _check_caches(model.numbers)
    return model


def _check(numbers: Mapping[str, object]) -> None:
    for name, value in numbers.items():
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or value != value
            or abs(value) == math.inf
        ):
            raise MachineModelInvalid(f"the machine model's {name} must be a number")
        if name in _WHOLE and not isinstance(value, int):
            raise MachineModelInvalid(f"the machine model's {name} must be a whole number")
        least, most = (0.1, 100) if name == "ghz" else _BOUNDS.get(name, _CYCLES)
        if not least <= value <= most:
            raise MachineModelInvalid(f"the machine model's {name} must be from {least:g} to {most:g}")


def check_fits(machine: MachineModel, cpus: int) -> None:
    """Raise MachineModelInvalid for more CPUs than a machine has, if their number is known."""
    room = machine.numbers.sockets * machine.numbers.cpus_per_socket
    if room and cpus > room:
        raise MachineModelInvalid(
            f"cpus = {cpus} does not fit the machine, which has {room}: sockets = {machine.numbers.sockets}, "
            f"cpus_per_socket = {machine.numbers.cpus_per_socket}"
        )


def _check_caches(numbers: MachineNumbers) -> None:
    for level, size, ways in (
        ("l1", numbers.l1_bytes, numbers.l1_ways),
        ("l2", numbers.l2_bytes, numbers.l2_ways),
    ):
        sets = size // _LINE // ways
        if not sets or sets & (sets - 1) or sets * _LINE * ways != size:
            raise MachineModelInvalid(
                f"the machine model's {level} has no power of two of sets: {level}_bytes must be 64 times "
                f"{level}_ways times a power of two"
            )
