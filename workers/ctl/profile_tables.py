# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles as tables for a terminal: symbols by caller, what certainly moved, the functions in a patch's diff, counters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from rich.console import Console
from rich.table import Table
from rich.text import Text

from workers.ctl.clients.base import Json
from workers.ctl.plaintext import plain_line
from workers.ctl.table_style import number, percent, placed, plain_table

if TYPE_CHECKING:
    from lab.profiles.case_profiles import ProfilingCost
    from lab.profiles.claims import ClaimedFunction, Measured, VariantClaims
    from lab.profiles.counters import CounterCell, CounterPage
    from lab.profiles.exact import ExactChange, ExactRow
    from lab.profiles.shape import CallerSplit, ProfilePage, ShareCell

# Nanoseconds in a millisecond.
MS = 1e6
_CLAIM_UNITS = {
    "samples": "% of busy samples",
    "ns": "ms waited a boot",
    "cycles": "cycles waited per operation",
    "instructions": "instructions per operation",
}
# By unit, the factor from a value to the shown number.
_CLAIM_SCALES: Mapping[str, float] = {"samples": 100.0, "ns": 1e-6}
_VERDICTS = {"changed": "changed", "unchanged": "no significant change"}
_MOST_COUNTERS = 12
_MOST_BY_CHANCE = 5
_BRIEF_BY_PATCH = 6


def show_profiles(console: Console, cases: Iterable[Json]) -> None:
    """Print, for each case, the callers of the requested symbols, the symbols that moved, its counters and its cost.

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
    """Return plain data with its fields as attributes, like the dataclasses that it was made from. Texts become one line each."""
    if isinstance(data, dict):
        return SimpleNamespace(**{name: as_attributes(item) for name, item in data.items()})
    if isinstance(data, list):
        return [as_attributes(item) for item in data]
    return plain_line(data) if isinstance(data, str) else data


def _cost(cost: ProfilingCost) -> str:
    """Return the overhead of one kind of profiles."""
    if cost.overhead is None or cost.low is None or cost.high is None:
        return f"overhead of {cost.kind} profiles: not measured"
    low, middle, high = (f"{100 * fraction:+.1f}" for fraction in (cost.low, cost.overhead, cost.high))
    return f"overhead of {cost.kind} profiles: {middle} % ({low} … {high}, {cost.boots} boots)"


def caller_table(page: ProfilePage, split: CallerSplit) -> Table:
    """Lay out the share of samples in some symbols, by caller, all variants side by side."""
    table = _variant_table(page, f"{page.case.title}: {' + '.join(split.symbols)}, {_unit(page)}", "caller")
    table.add_row(Text("all", style="bold"), *_cells(split.total))
    for row in split.rows:
        table.add_row(Text(f"  {row.caller}"), *_cells(row.cells))
    for head, texts in (
        ("boots", (f"{len(column.boots)}" for column in page.columns)),
        *_taken(page),
    ):
        table.add_row(Text(head, style="dim"), *(Text(text, style="dim") for text in texts))
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
    table = _variant_table(
        page, f"{page.case.title}: symbols that changed, {_unit(page)} in themselves", "symbol"
    )
    for row in page.symbols:
        if any(cell.certain for cell in row.own):
            table.add_row(placed(row.symbol, row.line), *_cells(row.own))
    if not table.row_count:
        table.add_row(Text("no significant change", style="dim"), *(Text("") for _ in page.columns))
    return table


def _variant_table(page: ProfilePage, title: str, head: str) -> Table:
    table = plain_table(title)
    table.add_column(head, overflow="fold")
    for column in page.columns:
        table.add_column(Text(column.variant), justify="right")
    return table


def _cells(cells: Sequence[ShareCell]) -> Iterable[Text]:
    return (_cell(cell) for cell in cells)


def _cell(cell: ShareCell) -> Text:
    """A share with half the width of its interval; bold and with an arrow where it certainly moved. Times in ms."""
    if cell.waited is not None and cell.unit == "instructions":
        return Text(f"{cell.size:,.0f}", style="bold" if cell.certain else "")
    scale = 100.0 if cell.waited is None else 1.0 if cell.unit == "cycles" else 1 / MS
    width = "" if cell.low is None or cell.high is None else f" ±{scale * (cell.high - cell.low) / 2:,.2f}"
    moved = cell.certain and cell.log_ratio
    arrow = ("▲" if (cell.log_ratio or 0) > 0 else "▼") if moved else " "
    return Text(f"{scale * cell.size:,.2f}{width}{arrow}", style="bold" if moved else "")


def show_claims(console: Console, claims: Iterable[VariantClaims]) -> None:
    """Print, for each variant, the functions in its diffs: where they are, whether they changed, before and after."""
    for side in claims:
        table = plain_table(f"{side.variant}: functions in the diff, measured in {_CLAIM_UNITS[side.unit]}")
        for head in ("function", "measured"):
            table.add_column(head, overflow="fold")
        for head in (side.base, side.variant):
            table.add_column(Text(head), justify="right")
        for claim in side.claims:
            if claim.measured is not None:
                table.add_row(*_claim_cells(claim, claim.measured, _CLAIM_SCALES.get(side.unit, 1.0)))
        if table.row_count:
            console.print(table)
        unseen = [claim.function for claim in side.claims if claim.measured is None]
        _named(
            console, f"{side.variant}: in the diff, not in the profiles (inlined, or not on the path)", unseen
        )
        _named(
            console, f"{side.variant}: changed outside the diff", [change.symbol for change in side.unclaimed]
        )


def _named(console: Console, head: str, functions: Sequence[str]) -> None:
    if functions:
        console.print(Text(f"  {head}: {', '.join(functions)}", style="dim"))


def _claim_cells(claim: ClaimedFunction, measured: Measured, scale: float) -> Iterator[Text]:
    style = "bold" if claim.verdict == "changed" else "dim"
    yield placed(claim.function, measured.line or claim.path, style)
    yield Text(
        f"{_VERDICTS[claim.verdict]}{', with what it calls' if measured.children else ''}", style=style
    )
    for value in (measured.before, measured.after):
        yield Text(f"{scale * value:,.2f}", style=style)


def show_counters(console: Console, page: CounterPage) -> None:
    """Print the counters that certainly moved, else the first few; and what could not be counted, and why."""
    if page.rows:
        console.print(_counter_table(page))
        moved = sum(any(cell.certain for cell in row.cells) for row in page.rows)
        console.print(Text(f"  {moved} of {len(page.rows)} counters changed significantly", style="dim"))
    if page.doubt:
        console.print(Text(f"  {page.doubt}", style="yellow"))
    for counter in page.unavailable:
        console.print(
            Text(
                f"  not available: {counter.what}: {counter.why} ({counter.boots} of {counter.of} boots)",
                style="dim",
            )
        )


def _counter_table(page: CounterPage) -> Table:
    table = plain_table(f"{page.case.title}: counted per timed iteration, medians of boots; change in %")
    table.add_column("counter", overflow="fold")
    for column in page.columns:
        table.add_column(Text(column.variant), justify="right")
    for row in page.rows[:_MOST_COUNTERS]:
        table.add_row(Text(row.name), *(_counter_cell(cell) for cell in row.cells))
    return table


def _counter_cell(cell: CounterCell) -> Text:
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


def show_exact(console: Console, changes: Sequence[ExactChange], *, brief: bool = False) -> None:
    """Print, for each variant, the functions that the patch changed, then the largest of those that differ anyway.

    brief: only the patch's largest.
    """
    for change in changes:
        each = f"per {change.operation}"
        table = plain_table(
            f"{change.variant} against {change.base}: {change.change:+,.2f} instructions {each}"
        )
        table.add_column("function, without its callees", overflow="fold")
        for head in ("change", "before", "after", "calls before", "calls after"):
            table.add_column(head, justify="right")
        patch = [row for row in change.rows if row.of_patch]
        chance = [row for row in change.rows if not row.of_patch]
        for row in patch[:_BRIEF_BY_PATCH] if brief else patch:
            table.add_row(*_exact_cells(row, "bold"))
        for row in chance[: 0 if brief else _MOST_BY_CHANCE]:
            table.add_row(*_exact_cells(row, "dim"))
        if table.row_count:
            console.print(table)
        else:
            console.print(
                Text(f"{change.variant} against {change.base}: {change.change:+,.2f} instructions {each}")
            )
        if any(row.touched for row in patch):
            console.print(Text("  * in the patch's own diff"))
        rest = f"{len(chance)} that also differ between boots of one kernel: {change.of_chance:+,.2f}"
        console.print(
            Text(f"  {len(patch)} changed by the patch {change.of_patch:+,.2f}; {rest}; {change.equal} equal")
        )
        if change.doubt:
            console.print(Text(f"  {change.doubt}", style="yellow"))


def _exact_cells(row: ExactRow, style: str) -> list[Text]:
    numbers = (row.before, row.after, row.calls_before, row.calls_after)
    texts = [
        f"{row.change:+,.2f}",
        *(f"{number:,.2f}" for number in numbers),
    ]
    name = f"{row.symbol} *" if row.touched else row.symbol
    return [placed(name, row.line, style), *(Text(text, style=style) for text in texts)]
