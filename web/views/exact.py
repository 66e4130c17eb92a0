# SPDX-License-Identifier: GPL-2.0-or-later
"""Exact profiles in words: where the instructions of a change went, a table for each variant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lab.profiles.exact import ExactChange, ExactRow
from web.views.claims import ClaimTable, claim_table, counted
from web.words import change

# What is not the patch's is long and small. On a comparison page the whole is a link away.
_MOST_BY_CHANCE, _BRIEF_BY_CHANCE, _BRIEF_BY_PATCH = 8, 3, 10
_ARROW = " \N{RIGHTWARDS ARROW}\N{NO-BREAK SPACE}"


@dataclass(frozen=True, slots=True)
class ExactLine:
    """One function: instructions and calls an operation, as text; calls: one number, or "3 → 4" where they differ.

    touched: the patch's diff has changed lines in it. line: where its code begins, if that is known.
    """

    symbol: str
    before: str
    after: str
    change: str
    calls: str
    touched: bool
    line: str


@dataclass(frozen=True, slots=True)
class ExactTable:
    """One variant against the base; hidden, hidden_patch: how many lines of either kind are left out.

    claimed: the functions in the patch's diff; None if it names none.
    """

    variant: str
    base: str
    operation: str
    change: str
    relative: str
    of_patch: str
    of_chance: str
    equal: int
    doubt: str
    patch: tuple[ExactLine, ...]
    chance: tuple[ExactLine, ...]
    hidden: int
    hidden_patch: int
    claimed: ClaimTable | None


def exact_tables(changes: Sequence[ExactChange], *, brief: bool = False) -> list[ExactTable]:
    """Return the tables of some variants. brief: only the largest lines of each."""
    return [_table(one, brief=brief) for one in changes]


def _table(one: ExactChange, *, brief: bool) -> ExactTable:
    patch = [row for row in one.rows if row.of_patch]
    chance = [row for row in one.rows if not row.of_patch]
    most_patch, most_chance = (_BRIEF_BY_PATCH, _BRIEF_BY_CHANCE) if brief else (len(patch), _MOST_BY_CHANCE)
    claimed = claim_table(one.claims, one.operation) if one.claims else None
    return ExactTable(
        one.variant,
        one.base,
        one.operation,
        signed(one.change),
        change(one.after / one.before, fine=True) if one.before else "",
        signed(one.of_patch),
        signed(one.of_chance),
        one.equal,
        one.doubt,
        tuple(map(_line, patch[:most_patch])),
        tuple(map(_line, chance[:most_chance])),
        max(0, len(chance) - most_chance),
        max(0, len(patch) - most_patch),
        claimed,
    )


def _line(row: ExactRow) -> ExactLine:
    calls = dict.fromkeys((counted(row.calls_before), counted(row.calls_after)))
    return ExactLine(
        row.symbol,
        counted(row.before),
        counted(row.after),
        signed(row.change),
        _ARROW.join(calls),
        row.touched,
        row.line,
    )


def signed(value: float) -> str:
    """A change with its sign: +1, −0.37."""
    text = counted(value)
    return f"+{text}" if value > 0 else text
