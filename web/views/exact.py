# SPDX-License-Identifier: GPL-2.0-or-later
"""Exact profiles in words: where the instructions of a change went, a table for each variant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lab.profiles.exact import ExactChange, ExactRow

# What is not the patch's is long and small.
_MOST_BY_CHANCE = 8
_MINUS, _THIN = "\N{MINUS SIGN}", "\N{NARROW NO-BREAK SPACE}"


@dataclass(frozen=True, slots=True)
class ExactLine:
    """One function: instructions and calls an operation, as text."""

    symbol: str
    before: str
    after: str
    change: str
    calls: tuple[str, str]


@dataclass(frozen=True, slots=True)
class ExactTable:
    """One variant against the base; hidden: how many lines that are not the patch's are left out."""

    variant: str
    base: str
    operation: str
    change: str
    of_patch: str
    of_chance: str
    equal: int
    doubt: str
    patch: tuple[ExactLine, ...]
    chance: tuple[ExactLine, ...]
    hidden: int


def exact_tables(changes: Sequence[ExactChange]) -> list[ExactTable]:
    """Return the tables of some variants."""
    return [_table(one) for one in changes]


def _table(one: ExactChange) -> ExactTable:
    patch = [row for row in one.rows if row.of_patch]
    chance = [row for row in one.rows if not row.of_patch]
    return ExactTable(
        one.variant,
        one.base,
        one.operation,
        signed(one.change),
        signed(one.of_patch),
        signed(one.of_chance),
        one.equal,
        one.doubt,
        tuple(map(_line, patch)),
        tuple(map(_line, chance[:_MOST_BY_CHANCE])),
        max(0, len(chance) - _MOST_BY_CHANCE),
    )


def _line(row: ExactRow) -> ExactLine:
    calls = counted(row.calls_before), counted(row.calls_after)
    return ExactLine(row.symbol, counted(row.before), counted(row.after), signed(row.change), calls)


def counted(value: float) -> str:
    """A count an operation: whole where it is whole, else with two decimals, or three digits if it is small."""
    if value == round(value):
        text = f"{value:,.0f}"
    elif abs(value) >= 0.01:
        text = f"{value:,.2f}"
    else:
        text = f"{value:.2g}"
    return text.replace(",", _THIN).replace("-", _MINUS)


def signed(value: float) -> str:
    """A change with its sign: +1, −0.37."""
    text = counted(value)
    return f"+{text}" if value > 0 else text
