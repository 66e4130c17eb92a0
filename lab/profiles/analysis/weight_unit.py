# SPDX-License-Identifier: GPL-2.0-or-later
"""The unit of a profile's weights, as files name it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

# Samples of running CPUs, nanoseconds of waiting, or executed instructions.
Unit = Literal["samples", "ns", "instructions"]
_UNITS: Mapping[str, Unit] = {"cpu": "samples", "exact": "instructions"}


def unit_of(kind: str) -> Unit:
    """Return what the weights of a kind of profiles count: of waits, nanoseconds."""
    return _UNITS.get(kind, "ns")


def unit_name(weight: float, unit: Unit) -> str:
    """Return a weight as a person reads it: "1,234 samples", "1.234 ms"."""
    return f"{weight / 1e6:,.3f} ms" if unit == "ns" else f"{weight:,.0f} {unit}"
