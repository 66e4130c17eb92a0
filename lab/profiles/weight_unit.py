# SPDX-License-Identifier: GPL-2.0-or-later
"""The unit of a profile's weights, as files name it."""

from __future__ import annotations

from typing import Literal

# Samples of running CPUs, or nanoseconds of waiting.
Unit = Literal["samples", "ns"]


def unit_name(weight: float, unit: Unit) -> str:
    """A weight as a person reads it: "1,234 samples", "1.234 ms"."""
    return f"{weight / 1e6:,.3f} ms" if unit == "ns" else f"{weight:,.0f} samples"
