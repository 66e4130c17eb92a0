# SPDX-License-Identifier: GPL-2.0-or-later
"""The unit of a profile's weights, as files name it."""

from collections.abc import Mapping
from typing import Literal

# Samples of running CPUs, nanoseconds of waiting, executed instructions, or cycles waited per operation.
Unit = Literal["samples", "ns", "instructions", "cycles"]
_UNITS: Mapping[str, Unit] = {"cpu": "samples", "exact": "instructions", "waiting": "cycles"}


def unit_of(kind: str) -> Unit:
    """Return the unit of a kind of profiles: nanoseconds for recorded waits."""
    return _UNITS.get(kind, "ns")


def is_waited(unit: Unit) -> bool:
    """Return whether weights are an amount of waiting, which is one number a boot and not a count of samples."""
    return unit in ("ns", "cycles")


def unit_name(weight: float, unit: Unit) -> str:
    """Return a weight as a person reads it: "1,234 samples", "1.234 ms"."""
    return f"{weight / 1e6:,.3f} ms" if unit == "ns" else f"{weight:,.0f} {unit}"


def amount_name(weight: float, unit: Unit) -> str:
    """Return a weight with what it is counted for: "1.234 ms a boot", "1,234 cycles per operation"."""
    return f"{unit_name(weight, unit)} {'per operation' if unit == 'cycles' else 'a boot'}"
