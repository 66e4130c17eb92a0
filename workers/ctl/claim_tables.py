# SPDX-License-Identifier: GPL-2.0-or-later
"""The functions in a patch's diff beside what profiles measured in them, as a table for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from workers.ctl.table_style import plain_table

if TYPE_CHECKING:
    from lab.profiles.claims import ClaimedFunction, VariantClaims

_UNITS = {
    "samples": "% of busy samples",
    "ns": "ms waited a boot",
    "cycles": "cycles waited per operation",
    "instructions": "instructions per operation",
}
# By unit, what one shown digit stands for.
_SCALES: Mapping[str, float] = {"samples": 100.0, "ns": 1e-6}
_VERDICTS = {"changed": "changed", "unchanged": "no significant change", "unseen": "not in the profiles"}


def show_claims(console: Console, claims: Iterable[VariantClaims]) -> None:
    """Print, for each variant, the functions in its diffs: where they are, whether they changed, before and after."""
    for one in claims:
        table = plain_table(f"{one.variant}: functions in the diff, measured in {_UNITS[one.unit]}")
        for head in ("function", "where", "measured"):
            table.add_column(head, overflow="fold")
        for head in (one.base, one.variant):
            table.add_column(Text(head), justify="right")
        for claim in one.claims:
            style = "bold" if claim.verdict == "changed" else "dim"
            table.add_row(*(Text(cell, style=style) for cell in _cells(claim, _SCALES.get(one.unit, 1.0))))
        console.print(table)
        if one.unclaimed:
            names = ", ".join(measured.symbol for measured in one.unclaimed)
            console.print(Text(f"  changed outside the diff: {names}"))


def _cells(claim: ClaimedFunction, scale: float) -> tuple[str, ...]:
    found = claim.measured
    if found is None:
        return claim.function, claim.path, _VERDICTS[claim.verdict], "", ""
    measured = f"{_VERDICTS[claim.verdict]}{', with what it calls' if found.children else ''}"
    before, after = (f"{scale * value:,.2f}" for value in (found.before, found.after))
    return claim.function, found.line or claim.path, measured, before, after
