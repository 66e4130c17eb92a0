# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles as tables for a terminal: symbols by caller, and what certainly moved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from rich.console import Console
from rich.table import Table
from rich.text import Text

from workers.ctl.claim_tables import show_claims
from workers.ctl.clients.base import Json
from workers.ctl.counter_tables import show_counters
from workers.ctl.exact_tables import show_exact
from workers.ctl.plaintext import plain_line
from workers.ctl.table_style import placed, plain_table

if TYPE_CHECKING:
    from lab.profiles.case_profiles import ProfilingCost
    from lab.profiles.counters import CounterPage
    from lab.profiles.shape import CallerSplit, ProfilePage, ShareCell

# Nanoseconds in a millisecond.
MS = 1e6


def show_profiles(console: Console, cases: Iterable[Json]) -> None:
    """Print, for each case, who calls the symbols asked for, which symbols moved, what it counted and cost.

    cases: as lab/profiles/exports/data.py has them.
    """
    for case in cases:
        page = cast("ProfilePage", as_attributes(case["profile"]))
        for split in page.splits[:1]:
            console.print(caller_table(page, split))
        if page.kind == "exact":
            show_exact(console, page.changes)
        else:
            console.print(moved_table(page))
        show_claims(console, page.claims)
        for reason in dict.fromkeys(column.doubt for column in page.columns if column.doubt):
            console.print(Text(f"  {plain_line(reason)}", style="yellow"))
        show_counters(console, cast("CounterPage", as_attributes(case["counters"])))
        for cost in page.costs:
            if cost.kind not in ("exact", "waiting"):
                console.print(Text(f"  {_cost(cost)}", style="dim"))


def as_attributes(data: Any) -> Any:
    """Plain data with its fields as attributes, as the dataclasses had them that it was made of. Texts are one line each."""
    if isinstance(data, dict):
        return SimpleNamespace(**{name: as_attributes(item) for name, item in data.items()})
    if isinstance(data, list):
        return [as_attributes(item) for item in data]
    return plain_line(data) if isinstance(data, str) else data


def _cost(cost: ProfilingCost) -> str:
    """Return the overhead of one kind of profiles."""
    if cost.overhead is None or cost.low is None or cost.high is None:
        return f"overhead of {cost.kind} profiles: not measured"
    low, middle, high = (f"{100 * one:+.1f}" for one in (cost.low, cost.overhead, cost.high))
    return f"overhead of {cost.kind} profiles: {middle} % ({low} … {high}, {cost.boots} boots)"


def caller_table(page: ProfilePage, split: CallerSplit) -> Table:
    """Lay out the share of samples in some symbols, by caller, all variants side by side."""
    table = _table(page, f"{page.case.title}: {' + '.join(split.symbols)}, {_unit(page)}", "caller")
    table.add_row(Text("all", style="bold"), *_cells(split.total))
    for row in split.rows:
        table.add_row(Text(f"  {row.caller}"), *_cells(row.cells))
    for head, told in (
        ("boots", (f"{len(column.boots)}" for column in page.columns)),
        *_taken(page),
    ):
        table.add_row(Text(head, style="dim"), *(Text(one, style="dim") for one in told))
    return table


def _taken(page: ProfilePage) -> Iterator[tuple[str, Iterable[str]]]:
    """Yield the rows of totals."""
    if page.kind == "exact":
        yield "instructions", (f"{column.boots[0].samples:,}" for column in page.columns)
    elif page.unit == "cycles":
        yield (
            "cycles in all",
            (f"{median(boot.samples for boot in column.boots):,.0f}" for column in page.columns),
        )
    elif page.waits:
        yield "waits", (f"{column.waits:,}" for column in page.columns)
        yield "ms in all", (f"{column.samples / MS:,.1f}" for column in page.columns)
    else:
        yield "samples", (f"{column.samples:,}" for column in page.columns)
        yield "idle", (f"{100 * column.idle:.1f}" for column in page.columns)


def _unit(page: ProfilePage) -> str:
    if page.kind == "exact":
        return "instructions a boot"
    if page.unit == "cycles":
        return "cycles waited per operation"
    return f"ms a boot ({page.kind})" if page.waits else "% of busy samples"


def moved_table(page: ProfilePage) -> Table:
    """Lay out the symbols whose own share, or time waited, certainly moved in some variant, the largest change first."""
    table = _table(page, f"{page.case.title}: symbols that changed, {_unit(page)} in themselves", "symbol")
    for row in page.symbols:
        if any(cell.certain for cell in row.own):
            table.add_row(placed(row.symbol, row.line), *_cells(row.own))
    if not table.row_count:
        table.add_row(Text("no significant change", style="dim"), *(Text("") for _ in page.columns))
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
    """A share with half the width of its interval; bold and with an arrow where it certainly moved. Times in ms."""
    if cell.waited is not None and cell.unit == "instructions":
        return Text(f"{cell.size:,.0f}", style="bold" if cell.certain else "")
    scale = 100.0 if cell.waited is None else 1.0 if cell.unit == "cycles" else 1 / MS
    width = "" if cell.low is None or cell.high is None else f" ±{scale * (cell.high - cell.low) / 2:,.2f}"
    moved = cell.certain and cell.log_ratio
    arrow = ("▲" if (cell.log_ratio or 0) > 0 else "▼") if moved else " "
    return Text(f"{scale * cell.size:,.2f}{width}{arrow}", style="bold" if moved else "")
