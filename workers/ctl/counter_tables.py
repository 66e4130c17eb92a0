# SPDX-License-Identifier: GPL-2.0-or-later
"""Counters of profiled boots, as a table for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from workers.ctl.table_style import number, percent, plain_table

if TYPE_CHECKING:
    from lab.profiles.counters import CounterCell, CounterPage

SHOWN_AT_MOST = 12


def show_counters(console: Console, page: CounterPage) -> None:
    """Print the counters that certainly moved, else the first few; and what could not be counted, and why."""
    if page.rows:
        console.print(_table(page))
        moved = sum(any(cell.certain for cell in row.cells) for row in page.rows)
        console.print(Text(f"  {moved} of {len(page.rows)} counters changed significantly", style="dim"))
    if page.doubt:
        console.print(Text(f"  {page.doubt}", style="yellow"))
    for one in page.unavailable:
        console.print(
            Text(f"  not available: {one.what}: {one.why} ({one.boots} of {one.of} boots)", style="dim")
        )


def _table(page: CounterPage) -> Table:
    table = plain_table(f"{page.case.title}: counted per timed iteration, medians of boots; change in %")
    table.add_column("counter", overflow="fold")
    for column in page.columns:
        table.add_column(Text(column.variant), justify="right")
    for row in page.rows[:SHOWN_AT_MOST]:
        table.add_row(Text(row.name), *(_cell(cell) for cell in row.cells))
    return table


def _cell(cell: CounterCell) -> Text:
    """The median, then the change; bold and with an arrow where it certainly moved."""
    if cell.median is None:
        return Text("–", style="dim")
    if cell.ratio is None:
        return Text(
            f"{number(cell.median)}{' ◆' if cell.certain else ''}", style="bold" if cell.certain else ""
        )
    arrow = ("▲" if cell.ratio > 1 else "▼") if cell.certain else " "
    text = f"{number(cell.median)} {percent(100 * (cell.ratio - 1))}{arrow}"
    return Text(text, style="bold" if cell.certain else "")
