# SPDX-License-Identifier: GPL-2.0-or-later
"""What a profile's weights count, as files say it."""

from __future__ import annotations

from typing import Literal

# Samples of running CPUs, or nanoseconds of waiting.
Unit = Literal["samples", "ns"]


def told(weight: float, unit: Unit) -> str:
    """A weight as a person reads it: "1,234 samples", "1.234 ms"."""
    return f"{weight / 1e6:,.3f} ms" if unit == "ns" else f"{weight:,.0f} samples"
