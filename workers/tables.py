# SPDX-License-Identifier: GPL-2.0-or-later
"""Comparisons as tables for a terminal, and shares by caller.

Everything a submission or a guest may have named is printed as plain text (rich's `Text`),
never as markup.
"""

from __future__ import annotations

from rich import box
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from lab.preview import Preview
from lab.queries.comparison import CaseComparison, ComparisonCell, ComparisonPage, comparison_page
from workers.terminal import duration

VERDICT_STYLE = {"regression": "red", "improvement": "green", "unchanged": "", "inconclusive": "yellow"}


def number(value: float | None) -> str:
    """Write a value with four significant digits: 0.01235, 3.771, 890.9, 41,250."""
    if value is None:
        return "–"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def percent(value: float | None, *, fine: bool = False) -> str:
    """Write a change with its sign, small ones finer: +1.3, −53.0, +0.51; `fine` gives all two digits."""
    if value is None:
        return "–"
    if round(value, 2) == 0:
        return "0.00"
    return f"{value:+.{2 if fine or abs(value) < 1 else 1}f}".replace("-", "−")


def show_comparison(console: Console, experiment_id: int) -> None:
    """Print every case's table, the mails' own lines, and what verified runs counted."""
    page = comparison_page(experiment_id)
    for side in page.pruned:
        console.print(Text(f"not built: {side.name}: {side.problem}", style="dim"))
    for side in page.candidates:
        if side.problem or side.note:
            console.print(Text(f"{side.name}: {side.problem or side.note}", style="yellow"))
    if page.verdicts.get("inconclusive"):
        console.print(Text("in brackets behind inconclusive: the boots it would take to tell", style="dim"))
    for case in page.cases:
        if case.metrics:
            console.print(case_table(page, case))
            if any(metric.effects for metric in case.metrics):
                console.print(effects_table(page, case))
            _show_remarks(console, case)
        for chosen in case.representatives:
            if chosen.line:
                console.print(Text(f"  {chosen.variant}: {chosen.line}"))
        for chosen in case.verified:
            for line in str(chosen.extras.get("verified", "")).splitlines():
                console.print(Text(f"  {chosen.variant}: {line}"))


def _show_remarks(console: Console, case: CaseComparison) -> None:
    """Say below a table what its cells cannot: why there is no ratio, what to know, what was left out."""
    for metric in case.metrics:
        for cell in metric.cells:
            if cell and cell.low is None and cell.reason:
                console.print(Text(f"  {metric.metric}, {cell.variant}: {cell.reason}", style="dim"))
    cells = [cell for metric in case.metrics for cell in metric.cells if cell]
    for note in dict.fromkeys(note for cell in cells for note in cell.notes):
        console.print(Text(f"  {note}", style="yellow"))
    if any(cell.partial for cell in cells):
        console.print(Text("  partial: boots that were asked for are missing", style="yellow"))
    for boot in case.invalid:
        reasons = "; ".join(boot.reasons)
        console.print(Text(f"  left out: {boot.variant}, boot {boot.block + 1}: {reasons}", style="yellow"))
    console.print(Text(f"  {_alarms(case)}", style="dim"))


def _alarms(case: CaseComparison) -> str:
    """The A/A record of the primary metrics."""
    told = [
        f"{metric.metric} {metric.alarms.called} of {metric.alarms.compared}"
        for metric in case.metrics
        if metric.primary
    ]
    return f"A/A on this target to this day, false alarms: {', '.join(told)}"


def case_table(page: ComparisonPage, case: CaseComparison) -> Table:
    """Lay out one case: for each metric the base, and below it each variant. Fits 80 columns."""
    base = page.base.name if page.base else "base"
    counted = ", executed instructions" if page.clock == "instructions" else ""
    table = plain_table(f"{case.case.title}: change against {base}{counted}")
    table.add_column("", overflow="fold")
    fine = page.clock == "instructions"
    for head in ("median", "±%", "± floor" if fine else "95 % interval"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("verdict (boots)", no_wrap=True)
    for metric in case.metrics:
        name = Text(f"{metric.metric} [{metric.unit}]", style="bold" if metric.primary else "")
        table.add_row(name)
        table.add_row(Text(f"  {base}"), Text(number(metric.base_median)))
        for cell in metric.cells:
            if cell:
                table.add_row(*_cells(cell, fine=fine))
    return table


def plain_table(title: str) -> Table:
    """An empty table in the house's style."""
    return Table(
        title=Text(title, style="bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        collapse_padding=True,
    )


def _cells(cell: ComparisonCell, *, fine: bool) -> list[Text]:
    low, high = (percent(end, fine=fine) for end in (cell.percent_low, cell.percent_high))
    interval = f"{low} … {high}" if cell.low is not None else "–"
    verdict = cell.verdict
    if cell.control and cell.verdict in {"regression", "improvement"}:
        verdict = "differs" if cell.control == "placebo" else "false alarm"
    if cell.verdict == "inconclusive" and cell.boots_needed:
        verdict += f" ({cell.boots_needed:,})"
    elif cell.verdict == "inconclusive" and cell.low is None:
        verdict += " (no ratio)"
    return [
        Text(f"  {cell.variant}"),
        Text(number(cell.median)),
        Text(percent(cell.percent, fine=fine)),
        Text(interval),
        Text(verdict, style=VERDICT_STYLE.get(cell.verdict, "")),
    ]


def effects_table(page: ComparisonPage, case: CaseComparison) -> Group:
    """Lay out what each switch does over all combinations, and what each two do beyond that."""
    reasons: list[str] = []
    table = plain_table(f"{case.case.title}: main effects and interactions")
    table.add_column("", overflow="fold")
    fine = page.clock == "instructions"
    for head in ("±%", "± floor" if fine else "95 % interval", "" if fine else "adjusted p"):
        table.add_column(head, justify="right", no_wrap=True)
    for metric in case.metrics:
        if not (metric.primary and metric.effects):
            continue
        table.add_row(Text(f"{metric.metric} [{metric.unit}]", style="bold"))
        for effect in metric.effects:
            if effect.ratio is None:
                # Below the table's columns, or one long reason would squeeze them all.
                reasons.append(f"{effect.label}: {effect.reason}")
                continue
            low, middle, high = (_change(end, fine) for end in (effect.low, effect.ratio, effect.high))
            q_value = "" if effect.q_value is None else f"{effect.q_value:.3f}"
            table.add_row(Text(f"  {effect.label}"), Text(middle), Text(f"{low} … {high}"), Text(q_value))
    left_out = (Text(f"  {line}", style="dim") for line in dict.fromkeys(reasons))
    return Group(table, *left_out)


def _change(ratio: float | None, fine: bool) -> str:
    return percent(None if ratio is None else 100 * (ratio - 1), fine=fine)


def show_preview(console: Console, preview: Preview) -> None:
    """Print what an experiment would be made of, what it takes, and the smallest change it would find."""
    table = plain_table("variants")
    for head in ("", "kernel", ""):
        table.add_column(head)
    for variant in preview.variants:
        table.add_row(Text(variant.name), Text(variant.state), Text(variant.reason))
    console.print(table)
    boots = (
        f"{preview.boots:,}"
        if preview.fewest == preview.boots
        else f"{preview.fewest:,} to {preview.boots:,}"
    )
    took = "nobody knows how long: it is the first of its kind here"
    if preview.seconds is not None:
        took = f"at most about {duration(preview.seconds)}"
    console.print(Text(f"{preview.builds} kernels to build, {boots} boots, {took}"))
    for one in preview.detectable:
        found = "no history on this target yet"
        if one.change is not None:
            found = f"a change of {100 * one.change:.1f} % would be found four times in five"
        console.print(Text(f"  {one.case} {one.metric}: {found}", style="dim"))
