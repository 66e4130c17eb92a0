# SPDX-License-Identifier: GPL-2.0-or-later
"""The functions in a patch's diff beside what profiles measured in them, as a table for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from workers.ctl.table_style import placed, plain_table

if TYPE_CHECKING:
    from lab.profiles.claims import ClaimedFunction, Measured, VariantClaims

_UNITS = {
    "samples": "% of busy samples",
    "ns": "ms waited a boot",
    "cycles": "cycles waited per operation",
    "instructions": "instructions per operation",
}
# By unit, what one shown digit stands for.
_SCALES: Mapping[str, float] = {"samples": 100.0, "ns": 1e-6}
_VERDICTS = {"changed": "changed", "unchanged": "no significant change"}


def show_claims(console: Console, claims: Iterable[VariantClaims]) -> None:
    """Print, for each variant, the functions in its diffs: where they are, whether they changed, before and after."""
    for one in claims:
        table = plain_table(f"{one.variant}: functions in the diff, measured in {_UNITS[one.unit]}")
        for head in ("function", "measured"):
            table.add_column(head, overflow="fold")
        for head in (one.base, one.variant):
            table.add_column(Text(head), justify="right")
        for claim in one.claims:
            if claim.measured is not None:
                table.add_row(*_cells(claim, claim.measured, _SCALES.get(one.unit, 1.0)))
        if table.row_count:
            console.print(table)
        unseen = [claim.function for claim in one.claims if claim.measured is None]
        _named(
            console, f"{one.variant}: in the diff, not in the profiles (inlined, or not on the path)", unseen
        )
        _named(console, f"{one.variant}: changed outside the diff", [found.symbol for found in one.unclaimed])


def _named(console: Console, head: str, functions: Sequence[str]) -> None:
    if functions:
        console.print(Text(f"  {head}: {', '.join(functions)}", style="dim"))


def _cells(claim: ClaimedFunction, found: Measured, scale: float) -> Iterator[Text]:
    style = "bold" if claim.verdict == "changed" else "dim"
    yield placed(claim.function, found.line or claim.path, style)
    yield Text(f"{_VERDICTS[claim.verdict]}{', with what it calls' if found.children else ''}", style=style)
    for value in (found.before, found.after):
        yield Text(f"{scale * value:,.2f}", style=style)
