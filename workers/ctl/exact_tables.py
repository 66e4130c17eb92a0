# SPDX-License-Identifier: GPL-2.0-or-later
"""Exact profiles as tables for a terminal: where the instructions of a change went."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from workers.ctl.table_style import placed, plain_table

if TYPE_CHECKING:
    from lab.profiles.exact import ExactChange, ExactRow

_MOST_BY_CHANCE = 5
_BRIEF_BY_PATCH = 6


def show_exact(console: Console, changes: Sequence[ExactChange], *, brief: bool = False) -> None:
    """Print, for each variant, the functions that the patch changed, then the largest of those that differ anyway.

    brief: only the patch's largest.
    """
    for one in changes:
        each = f"per {one.operation}"
        table = plain_table(f"{one.variant} against {one.base}: {one.change:+,.2f} instructions {each}")
        table.add_column("function, without its callees", overflow="fold")
        for head in ("change", "before", "after", "calls before", "calls after"):
            table.add_column(head, justify="right")
        patch = [row for row in one.rows if row.of_patch]
        chance = [row for row in one.rows if not row.of_patch]
        for row in patch[:_BRIEF_BY_PATCH] if brief else patch:
            table.add_row(*_cells(row, "bold"))
        for row in chance[: 0 if brief else _MOST_BY_CHANCE]:
            table.add_row(*_cells(row, "dim"))
        if table.row_count:
            console.print(table)
        else:
            console.print(Text(f"{one.variant} against {one.base}: {one.change:+,.2f} instructions {each}"))
        if any(row.touched for row in patch):
            console.print(Text("  * in the patch's own diff"))
        rest = f"{len(chance)} that differ between boots of one kernel too {one.of_chance:+,.2f}"
        console.print(
            Text(f"  {len(patch)} changed by the patch {one.of_patch:+,.2f}; {rest}; {one.equal} equal")
        )
        if one.doubt:
            console.print(Text(f"  {one.doubt}", style="yellow"))


def _cells(row: ExactRow, style: str) -> list[Text]:
    numbers = (row.before, row.after, row.calls_before, row.calls_after)
    texts = [
        f"{row.change:+,.2f}",
        *(f"{number:,.2f}" for number in numbers),
    ]
    name = f"{row.symbol} *" if row.touched else row.symbol
    return [placed(name, row.line, style), *(Text(text, style=style) for text in texts)]
