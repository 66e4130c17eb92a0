# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles as tables for a terminal: symbols by caller, and what certainly moved."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lab.queries.experiments import experiment_page
from lab.queries.profile import CallerSplit, ProfilePage, ShareCell, profile_page
from workers.tables import plain_table

MOVED_AT_MOST = 12


def show_profiles(console: Console, experiment_id: int, asked: tuple[str, ...] = ()) -> None:
    """Print, for each profiled case, who calls the symbols asked for, and which symbols moved.

    asked: what the workload watches if empty.
    """
    for case in experiment_page(experiment_id).cases:
        page = profile_page(experiment_id, case.id, asked=asked, rows=MOVED_AT_MOST)
        if not page.columns:
            continue
        for split in page.splits[:1]:
            console.print(caller_table(page, split))
        console.print(moved_table(page))
        for reason in dict.fromkeys(column.doubt for column in page.columns if column.doubt):
            console.print(Text(f"  {reason}", style="yellow"))


def caller_table(page: ProfilePage, split: CallerSplit) -> Table:
    """Lay out the share of samples in some symbols, by caller, all variants side by side."""
    table = _table(page, f"{page.case.title}: {' + '.join(split.symbols)}, % of busy samples", "caller")
    table.add_row(Text("all", style="bold"), *_cells(split.total))
    for row in split.rows:
        table.add_row(Text(f"  {row.caller}"), *_cells(row.cells))
    for head, told in (
        ("boots", (f"{len(column.boots)}" for column in page.columns)),
        ("samples", (f"{column.samples:,}" for column in page.columns)),
        ("idle", (f"{100 * column.idle:.1f}" for column in page.columns)),
    ):
        table.add_row(Text(head, style="dim"), *(Text(one, style="dim") for one in told))
    return table


def moved_table(page: ProfilePage) -> Table:
    """Lay out the symbols whose own share certainly moved in some variant, the largest change first."""
    table = _table(page, f"{page.case.title}: symbols that moved, % of busy samples in themselves", "symbol")
    for row in page.symbols:
        if any(cell.certain for cell in row.own):
            table.add_row(Text(row.symbol), *_cells(row.own))
    if not table.row_count:
        table.add_row(Text("none for certain", style="dim"), *(Text("") for _ in page.columns))
    return table


def _table(page: ProfilePage, title: str, head: str) -> Table:
    table = plain_table(title)
    table.add_column(head, overflow="fold")
    for column in page.columns:
        table.add_column(Text(column.variant), justify="right")
    return table


def _cells(cells: Sequence[ShareCell]) -> Iterable[Text]:
    return (_cell(one) for one in cells)


def _cell(cell: ShareCell) -> Text:
    """A share with half the width of its interval; bold and with an arrow where it certainly moved."""
    width = "" if cell.low is None or cell.high is None else f" ±{50 * (cell.high - cell.low):.2f}"
    moved = cell.certain and cell.log_ratio
    arrow = ("▲" if (cell.log_ratio or 0) > 0 else "▼") if moved else " "
    return Text(f"{100 * cell.share:.2f}{width}{arrow}", style="bold" if moved else "")
