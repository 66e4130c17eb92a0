# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of a reply to the list: before, after, the change and the verdict of each metric that matters."""

import re
from collections.abc import Sequence

from lab.comparisons.exports.figures import doubt, interval, interval_head, is_fine, own_medians
from lab.comparisons.reply.mail_text import fold, harmless, name, table
from lab.comparisons.shape import CaseData, CellData, ComparisonData, MetricData
from lab.figures import change, number
from lab.statistics.verdict_words import CHANGES, DIRECTIONS, kind_of

# A metric at one number of CPUs, as the contention clock names them.
_OF_CPUS = re.compile(r"(.+)_(\d{1,2})")
_MARKS = {"inconclusive": "?", "unchanged": "="}


def shown_metrics(case: CaseData, variants: Sequence[str]) -> list[MetricData]:
    """Return primary metrics, and others that were called for one of these variants where no primary one has the same verdict."""
    called = {
        (cell["variant"], cell["verdict"])
        for metric in case["metrics"]
        if metric["primary"]
        for cell in metric["cells"]
    }
    return [
        metric
        for metric in case["metrics"]
        if metric["primary"]
        or any(
            cell["verdict"] in CHANGES and (cell["variant"], cell["verdict"]) not in called
            for cell in metric["cells"]
            if cell["variant"] in variants
        )
    ]


def case_lines(data: ComparisonData, case: CaseData, variants: Sequence[str]) -> list[str]:
    """Return the lines of one case: a column for each variant if they fit, else a block for each metric."""
    metrics = shown_metrics(case, variants)
    if not metrics:
        return []
    # Indented where its words could mean something to a reader of mail: a workload and its preset never do.
    title = name(case["title"])
    lines = fold(title, _safe(title), _safe(title))
    side_by_side = _by_cpus(data, metrics, variants) or _side_by_side(data, metrics, variants)
    if side_by_side is not None:
        return [*lines, "", *side_by_side]
    for metric in metrics:
        lines += ["", *_block(data, metric, variants)]
    return lines


def value(metric: MetricData, variant: str) -> str:
    """A side's median with half the width of its interval: 21,876 ±2.5%; the median alone where boots agree exactly."""
    spread = next((row for row in metric["spreads"] if row["variant"] == variant), None)
    cell = _cell(metric, variant)
    middle = spread["median"] if spread else cell["median"] if cell else metric["base_median"]
    if spread is None or not spread["median"] or spread["low"] == spread["high"]:
        return number(middle)
    half = 50 * (spread["high"] - spread["low"]) / abs(spread["median"])
    return f"{number(middle)} ±{half:.1f}%" if half < 1000 else number(middle)


def _by_cpus(
    data: ComparisonData, metrics: Sequence[MetricData], variants: Sequence[str]
) -> list[str] | None:
    """Return a line for each number of CPUs, if all metrics are one metric at several of them and the lines fit."""
    names = [_OF_CPUS.fullmatch(metric["name"]) for metric in metrics]
    if data["experiment"]["clock"] != "contention" or len(metrics) < 2:
        return None
    if None in names or len({match[1] for match in names if match}) > 1:
        return None
    rows = [["CPUs", name(data["base"]["name"]), *(name(variant) for variant in variants)]]
    for match, metric in zip(names, metrics, strict=True):
        cells = [_cell(metric, variant) for variant in variants]
        changes = [
            f"{change(cell['ratio'])} {interval(cell)} {_MARKS.get(kind_of(cell['verdict']), ' ')}"
            if cell
            else "none  "
            for cell in cells
        ]
        rows.append([match[2] if match else "", number(metric["base_median"]), *changes])
    lines = table(rows)
    first, direction = metrics[0], DIRECTIONS.get(metrics[0]["better"], "")
    title = f"{name(names[0][1] if names[0] else '', 30)} [{name(first['unit'], 12)}], {direction}"
    marked = f"Changes with {interval_head(data, [])}s; ? is inconclusive, = is unchanged."
    return [*fold(title, _safe(first["name"]), "  "), *lines, marked] if lines else None


def _side_by_side(
    data: ComparisonData, metrics: Sequence[MetricData], variants: Sequence[str]
) -> list[str] | None:
    base = data["base"]["name"]
    rows = [["", name(base), *(name(variant) for variant in variants)]]
    for metric in metrics:
        cells = [_cell(metric, variant) for variant in variants]
        rows += [
            [
                _safe(metric["name"]) + _title(metric),
                value(metric, base),
                *(
                    value(metric, variant) if cell else ""
                    for variant, cell in zip(variants, cells, strict=True)
                ),
            ],
            ["  change", "", *(change(cell["ratio"], fine=is_fine(data)) if cell else "" for cell in cells)],
            [
                f"  {interval_head(data, filter(None, cells))}",
                "",
                *(interval(cell, fine=is_fine(data)) if cell else "" for cell in cells),
            ],
            ["  verdict", "", *(_verdict(data, cell) if cell else "not measured" for cell in cells)],
        ]
        notes = [_note(data, metric, cell) if cell else "" for cell in cells]
        if any(notes):
            alone = [note.removeprefix("within blocks; medians ") for note in notes]
            rows.insert(-2, ["  medians alone", "", *alone])
    return table(rows)


def _block(data: ComparisonData, metric: MetricData, variants: Sequence[str]) -> list[str]:
    """A metric, below it the base and each variant in two lines."""
    direction = f", {DIRECTIONS[metric['better']]}" if metric["better"] in DIRECTIONS else ""
    lines = fold(f"{_title(metric)}{direction}", _safe(metric["name"]), "  ")
    base = data["base"]["name"]
    lines += fold(f"{name(base, 40)}: {value(metric, base)}", "  ", "    ")
    for variant in variants:
        cell = _cell(metric, variant)
        lines += fold(f"{name(variant, 68)}", "  ", "    ")
        if cell is None:
            lines.append("    not measured")
            continue
        figures = f"{value(metric, variant)}  {change(cell['ratio'], fine=is_fine(data))}"
        if note := _note(data, metric, cell):
            figures += f" ({note})"
        lines += fold(
            f"{figures} {interval(cell, fine=is_fine(data))} {_verdict(data, cell)}", "    ", "      "
        )
    return lines


def _note(data: ComparisonData, metric: MetricData, cell: CellData) -> str:
    return own_medians(cell, shown_base=metric["base_median"], fine=is_fine(data))


def _verdict(data: ComparisonData, cell: CellData) -> str:
    if cell["ratio"] is None and cell["reason"]:
        return f"{cell['verdict']}: {name(cell['reason'], 200)}"
    if kind_of(cell["verdict"]) == "unchanged":
        return f"unchanged within {100 * cell['margin']:.3g}%"
    why = doubt(cell, fine=is_fine(data))
    return f"{cell['verdict']}, {why}" if why else cell["verdict"]


def _title(metric: MetricData) -> str:
    return (
        f"{name(metric['name'], 30)} [{name(metric['unit'], 12)}]"
        if metric["unit"]
        else name(metric["name"], 30)
    )


def _safe(words: str) -> str:
    """Return a safe beginning for a line with these first words."""
    return "" if harmless(words) else "  "


def _cell(metric: MetricData, variant: str) -> CellData | None:
    return next((cell for cell in metric["cells"] if cell["variant"] == variant), None)
