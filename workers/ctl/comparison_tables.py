# SPDX-License-Identifier: GPL-2.0-or-later
"""Comparisons as tables for a terminal, from plain data: of this machine's lab or of one that answered over HTTP.

Everything a submission or a guest may have named is printed as plain text (rich's `Text`),
never as markup.
"""

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from lab.comparisons.exports.figures import (
    after_headline,
    doubt,
    interval_head,
    is_fine,
    model_and_machine_lines,
    own_medians,
)
from lab.comparisons.shape import CaseData, CellData, ComparisonData
from lab.one_line import plain
from lab.statistics.verdict_words import shown_verdict
from workers.ctl.plaintext import plain_line
from workers.ctl.table_style import number, percent, plain_table, prose

# A machine that is busy for hours leaves out every boot, for the same reason.
MOST_LEFT_OUT = 6


def show_comparison(console: Console, data: ComparisonData) -> None:
    """Print every case's table, the mails' own lines, and what verified runs counted."""
    show_conclusion(console, data)
    for variant in data["variants"]:
        if variant["state"] == "pruned":
            console.print(
                Text(f"not built: {plain(variant['name'])}: {plain(variant['problem'])}", style="dim")
            )
        elif variant["role"] != "base" and (text := variant["problem"] or variant["note"]):
            console.print(Text(f"{plain(variant['name'])}: {plain(text)}", style="yellow"))
    if data["verdicts"].get("inconclusive"):
        console.print(Text("in brackets after inconclusive: the boots needed", style="dim"))
    for case in data["cases"]:
        if case["metrics"]:
            console.print(case_table(data, case))
            if _has_interaction(case):
                console.print(effects_table(data, case))
        else:
            console.print(Text(f"{plain(case['title'])}: no boot to compare", style="bold yellow"))
        _show_remarks(console, case)
        for text in model_and_machine_lines(case):
            console.print(Text(f"  {prose(text)}"))
        for line in case["lines"]:
            console.print(Text(f"  {plain(line['variant'])}: {plain(line['line'])}"))
        for proof in case["proofs"]:
            for text in proof["statement"].splitlines():
                console.print(Text(f"  {plain(proof['variant'])}: {plain(text)}"))


def show_conclusion(console: Console, data: ComparisonData) -> None:
    """Print the answer, and below it how sure it is and what to do next. A lab of an older version sends none."""
    if "conclusion" in data:
        console.print(Text(prose(plain_line(data["conclusion"]["headline"])), style="bold"))
        console.print(Text(prose(plain_line(after_headline(data), 700))))


def _show_remarks(console: Console, case: CaseData) -> None:
    """Print remarks below a table: why there is no ratio, doubts about the interval, notes, and discarded boots."""
    for metric in case["metrics"]:
        for cell in metric["cells"]:
            if cell["reason"] and (cell["low"] is None or doubt(cell)):
                remark = f"  {metric['name']}, {plain(cell['variant'])}: {plain(cell['reason'])}"
                console.print(Text(remark, style="dim"))
    cells = [cell for metric in case["metrics"] for cell in metric["cells"]]
    for note in dict.fromkeys(note for cell in cells for note in cell["notes"]):
        console.print(Text(f"  {plain(note)}", style="yellow"))
    if any(cell["partial"] for cell in cells):
        console.print(Text("  partial: some requested boots are missing", style="yellow"))
    for boot in case["invalid"][:MOST_LEFT_OUT]:
        reasons = plain("; ".join(boot["reasons"]))
        remark = f"  discarded: {plain(boot['variant'])}, boot {boot['block'] + 1}: {reasons}"
        console.print(Text(remark, style="yellow"))
    if len(case["invalid"]) > MOST_LEFT_OUT:
        more = len(case["invalid"]) - MOST_LEFT_OUT
        console.print(
            Text(f"  and {more} more boots; labctl compare --format json lists all", style="yellow")
        )
    if case["metrics"]:
        console.print(Text(f"  {_alarms(case)}", style="dim"))


def _alarms(case: CaseData) -> str:
    """The A/A record of the primary metrics."""
    names: dict[str, list[str]] = {}
    for metric in case["metrics"]:
        if metric["primary"]:
            flagged = f"{metric['alarms']['called']} of {metric['alarms']['compared']}"
            names.setdefault(flagged, []).append(metric["name"])
    alarms = [
        f"{len(alike)} metrics {flagged} each" if len(alike) > 1 else f"{alike[0]} {flagged}"
        for flagged, alike in names.items()
    ]
    return f"control: wrongly flagged on this target so far: {', '.join(alarms)}"


def _has_interaction(case: CaseData) -> bool:
    """Return whether switches were on together: else a switch's effect is in its variant's row."""
    effects = (effect for metric in case["metrics"] for effect in metric["effects"])
    return any(len(effect["switches"]) > 1 and effect["ratio"] is not None for effect in effects)


def case_table(data: ComparisonData, case: CaseData) -> Table:
    """Lay out one case: for each metric the base, and below it each variant. Fits 80 columns."""
    base = data["base"]["name"]
    fine = is_fine(data)
    counted = ", executed instructions" if fine else ""
    table = plain_table(f"{plain(case['title'])}: change against {base}{counted}")
    table.add_column("", overflow="fold")
    cells = [cell for metric in case["metrics"] for cell in metric["cells"]]
    for head in ("median", "±%", interval_head(data, cells)):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("verdict (boots)", no_wrap=True)
    for metric in case["metrics"]:
        name = Text(f"{metric['name']} [{metric['unit']}]", style="bold" if metric["primary"] else "")
        table.add_row(name)
        table.add_row(Text(f"  {base}"), Text(number(metric["base_median"])))
        for cell in metric["cells"]:
            table.add_row(*_cells(cell, metric["base_median"], fine=fine))
    return table


def _cells(cell: CellData, base: float | None, *, fine: bool) -> list[Text]:
    low, high = _change(cell["low"], fine), _change(cell["high"], fine)
    interval = f"{low} … {high}" if cell["low"] is not None else "–"
    shown = shown_verdict(cell["verdict"], cell["role"])
    verdict = shown.word
    if shown.kind == "inconclusive" and cell["boots_needed"]:
        verdict += f" ({cell['boots_needed']:,})"
    elif shown.kind == "inconclusive" and cell["low"] is None:
        verdict += " (no ratio)"
    if why := doubt(cell, fine=fine):
        verdict += f"\n{why}"
    if note := own_medians(cell, shown_base=base, fine=fine):
        verdict += f"\n{note}"
    return [
        Text(f"  {plain(cell['variant'])}"),
        Text(number(cell["median"])),
        Text(_change(cell["ratio"], fine)),
        Text(interval),
        Text(verdict, style=shown.style),
    ]


def effects_table(data: ComparisonData, case: CaseData) -> Group:
    """Lay out what each switch does over all combinations, and what each pair does beyond that."""
    reasons: list[str] = []
    table = plain_table(f"{plain(case['title'])}: main effects and interactions")
    table.add_column("", overflow="fold")
    fine = is_fine(data)
    for head in ("±%", "± floor" if fine else "95% interval", "" if fine else "q"):
        table.add_column(head, justify="right", no_wrap=True)
    for metric in case["metrics"]:
        if not (metric["primary"] and metric["effects"]):
            continue
        table.add_row(Text(f"{metric['name']} [{metric['unit']}]", style="bold"))
        for effect in metric["effects"]:
            label = plain(" × ".join(effect["switches"]))
            if effect["ratio"] is None:
                # Printed below the table: inside it one long reason would squeeze all columns.
                reasons.append(f"{label}: {plain(effect['reason'])}")
                continue
            low, middle, high = (
                _change(end, fine) for end in (effect["low"], effect["ratio"], effect["high"])
            )
            q_value = "" if effect["q"] is None else f"{effect['q']:.3f}"
            table.add_row(Text(f"  {label}"), Text(middle), Text(f"{low} … {high}"), Text(q_value))
    left_out = (Text(f"  {line}", style="dim") for line in dict.fromkeys(reasons))
    return Group(table, *left_out)


def _change(ratio: float | None, fine: bool) -> str:
    return percent(None if ratio is None else 100 * (ratio - 1), fine=fine)
