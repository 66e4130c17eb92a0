# SPDX-License-Identifier: GPL-2.0-or-later
"""A workload's parameters: their types, their limits, and how values are read and written."""

import re
from dataclasses import dataclass
from typing import Literal

from workloads.errors import BadParam, MachineModelInvalid
from workloads.machines import described_machine, machine_names

ParamValue = bool | int | str | tuple[int, ...]
ParamType = Literal["int", "bool", "choice", "str", "int-list", "machine"]

_UNITS = {"": 1, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}
# Programs print it back inside JSON unescaped.
_TEXT = re.compile(r'[^"\\]{0,200}')
_MAX_LIST = 16


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter. minimum and maximum bound an int and each member of an int-list."""

    name: str
    type: ParamType
    default: ParamValue
    help: str
    minimum: int = 0
    maximum: int = 1 << 62
    choices: tuple[str, ...] = ()

    def read(self, value: object) -> ParamValue:
        """Return the value of what a file, a form or a database holds. Raises BadParam.

        Whole numbers may be written as text, with Ki, Mi or Gi; lists as text with commas.
        """
        match self.type:
            case "bool":
                return self._bool(value)
            case "int":
                return self._int(value)
            case "int-list":
                return self._list(value)
            case "choice":
                if isinstance(value, str) and value in self.choices:
                    return value
                raise self._bad(value, "one of " + ", ".join(self.choices))
            case "machine":
                return self._machine(value)
            case "str":
                if isinstance(value, str) and _TEXT.fullmatch(value) and value.isprintable():
                    return value
                raise self._bad(value, "at most 200 printable characters without quotes and backslashes")

    @property
    def valid(self) -> str:
        """Return the allowed values, in words."""
        match self.type:
            case "bool":
                return "true or false"
            case "choice":
                return ", ".join(self.choices)
            case "machine":
                return f'{", ".join(machine_names())}, or a table of numbers: {{ base = "two-socket", transfer_cycles = 90 }}'
            case "str":
                return "text"
            case "int" | "int-list":
                noun = "a whole number" if self.type == "int" else "whole numbers"
                return f"{noun} from {self.minimum:,} to {self.maximum:,}"

    def _bool(self, value: object) -> bool:
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and value.lower() in {"true", "on", "yes", "1"}:
            return True
        if isinstance(value, str) and value.lower() in {"false", "off", "no", "0"}:
            return False
        raise self._bad(value, self.valid)

    def _int(self, value: object) -> int:
        number = value
        if isinstance(value, str) and (match := re.fullmatch(r"\s*([0-9]{1,19}) ?(|Ki|Mi|Gi)\s*", value)):
            number = int(match[1]) * _UNITS[match[2]]
        if isinstance(number, bool) or not isinstance(number, int):
            raise self._bad(value, self.valid)
        if not self.minimum <= number <= self.maximum:
            raise self._bad(value, self.valid)
        return number

    def _list(self, value: object) -> tuple[int, ...]:
        members = value.split(",") if isinstance(value, str) else value
        if not isinstance(members, list | tuple) or not 1 <= len(members) <= _MAX_LIST:
            raise self._bad(value, f"a list of 1 to {_MAX_LIST} whole numbers")
        numbers = tuple(self._int(member) for member in members)
        if len(set(numbers)) != len(numbers):
            raise self._bad(value, "numbers that differ from each other")
        return numbers

    def _machine(self, value: object) -> str:
        """Return a machine model as text, the same for the same numbers."""
        try:
            return described_machine(value).name
        except MachineModelInvalid as exc:
            raise MachineModelInvalid(f"{self.name}: {exc}") from exc

    def _bad(self, value: object, valid: str) -> BadParam:
        return BadParam(f"{self.name} = {value!r} is not valid: {valid}")


def written(value: object) -> str:
    """Return a value in the form of the programs' arguments: 1 and 0, lists with commas."""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, list | tuple):
        return ",".join(written(member) for member in value)
    return str(value)


def label(number: int) -> str:
    """A number as part of a metric's name: 4294967296 is `4g`."""
    gibi = 1 << 30
    return f"{number // gibi}g" if number and number % gibi == 0 else str(number)
