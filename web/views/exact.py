# SPDX-License-Identifier: GPL-2.0-or-later
"""Exact profiles in words: where the instructions of a change went, a table for each variant."""

from typing import Any

from lab.from_attributes import attributes
from lab.profiles.exact import ExactChange, ExactRow
from web.views.claims import claim_table, counted
from web.words import change

# Lines that the patch did not cause are many and small. On a comparison page, all of them are a link away.
_MOST_BY_CHANCE, _BRIEF_BY_CHANCE, _BRIEF_BY_PATCH = 8, 3, 10
_ARROW = " \N{RIGHTWARDS ARROW}\N{NO-BREAK SPACE}"


def exact_table(exact_change: ExactChange, *, brief: bool = False) -> dict[str, Any]:
    """Return one variant against the base; hidden, hidden_patch: how many lines of either kind are left out.

    brief: only the largest lines.
    """
    patch = [row for row in exact_change.rows if row.of_patch]
    chance = [row for row in exact_change.rows if not row.of_patch]
    most_patch, most_chance = (_BRIEF_BY_PATCH, _BRIEF_BY_CHANCE) if brief else (len(patch), _MOST_BY_CHANCE)
    return {
        **attributes(exact_change, ("variant", "base", "operation", "equal", "doubt")),
        "change": signed(exact_change.change),
        "relative": change(exact_change.after / exact_change.before, fine=True)
        if exact_change.before
        else "",
        "of_patch": signed(exact_change.of_patch),
        "of_chance": signed(exact_change.of_chance),
        "patch": [_line(row) for row in patch[:most_patch]],
        "chance": [_line(row) for row in chance[:most_chance]],
        "hidden": max(0, len(chance) - most_chance),
        "hidden_patch": max(0, len(patch) - most_patch),
        "claimed": claim_table(exact_change.claims, exact_change.operation) if exact_change.claims else None,
    }


def _line(row: ExactRow) -> dict[str, Any]:
    """Return one function, counted for an operation; calls: one number, or "3 → 4" where they differ."""
    calls = dict.fromkeys((counted(row.calls_before), counted(row.calls_after)))
    return {
        "symbol": row.symbol,
        "before": counted(row.before),
        "after": counted(row.after),
        "change": signed(row.change),
        "calls": _ARROW.join(calls),
        "touched": row.touched,
        "line": row.line,
    }


def signed(value: float) -> str:
    """A change with its sign: +1, −0.37."""
    text = counted(value)
    return f"+{text}" if value > 0 else text
