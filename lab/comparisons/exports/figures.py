# SPDX-License-Identifier: GPL-2.0-or-later
"""Numbers as plain text for reports: signs and units in ASCII."""

from collections.abc import Iterable

from lab.comparisons.shape import CaseData, CellData, ComparisonData, EffectData, MetricData, ShiftData
from lab.figures import change, medians_note, number
from lab.one_line import plain
from lab.statistics.verdict import FALSE_DISCOVERIES
from lab.statistics.verdict_words import kind_of

CLOCK_WORDS = {"instructions": "executed instructions", "contention": "cycles of a modelled machine"}
"""The unit that each clock but the wall clock counts, in words."""

# In every reason that other metrics hold a verdict back (lab/statistics/verdict.py, family_interval.py), in no other.
_AMONG_METRICS = " metrics (q = "


def is_fine(data: ComparisonData) -> bool:
    """Return whether changes have two digits, as exact counts deserve."""
    return data["experiment"]["clock"] == "instructions"


def after_headline(data: ComparisonData) -> str:
    """Return the conclusion without its headline."""
    conclusion = data["conclusion"]
    return conclusion["text"].removeprefix(conclusion["headline"]).strip()


def interval(cell: CellData | EffectData | ShiftData, *, fine: bool = False) -> str:
    """An interval: [-1.2%, +24.5%], or nothing."""
    if cell["low"] is None or cell["high"] is None:
        return ""
    return f"[{change(cell['low'], fine=fine)}, {change(cell['high'], fine=fine)}]"


def interval_head(data: ComparisonData, cells: Iterable[CellData]) -> str:
    """Return what the intervals of these cells are, for the head of a table."""
    if is_fine(data):
        # Boots that do not agree exactly are tested as others are.
        return "± floor" if all(cell["p"] is None for cell in cells) else "interval"
    # Where boots may stop early, each look has a stricter level of its own.
    return "interval" if data["experiment"]["sequential"] else "95% interval"


def held_back(cell: CellData) -> bool:
    """Return whether a shift is significant alone but not among all metrics; its interval is then wider.

    Its numbers alone do not tell: the floor, or the stricter level of an early look, may be what holds it back.
    """
    p, q = cell["p"], cell["q"]
    clear = p is not None and q is not None and p <= FALSE_DISCOVERIES < q
    return clear and kind_of(cell["verdict"]) == "inconclusive" and _AMONG_METRICS in cell["reason"]


def doubt(cell: CellData, *, fine: bool = False) -> str:
    """Return in a few words why a shift with an interval is not called: other metrics or the floor; else nothing."""
    if kind_of(cell["verdict"]) != "inconclusive" or cell["low"] is None or cell["high"] is None:
        return ""
    if held_back(cell):
        return f"q {cell['q']:.2g} over all metrics"
    if not cell["low"] <= 1 <= cell["high"]:
        return f"within the floor of {change(1 + cell['floor'], fine=fine).lstrip('+')}"
    return ""


def told_change(cell: CellData | EffectData, *, fine: bool = False) -> str:
    """A change and its interval in words, or why there is none."""
    if cell["ratio"] is None:
        return cell["reason"] or "no ratio"
    return f"{change(cell['ratio'], fine=fine)} {interval(cell, fine=fine)}".strip()


def own_medians(cell: CellData, *, shown_base: float | None = None, fine: bool = False) -> str:
    """Return why a cell's medians and its change differ, for the line that shows both; nothing where they agree."""
    return medians_note(
        cell["base_median"],
        cell["median"],
        cell["ratio"],
        low=cell["low"],
        high=cell["high"],
        shown_base=shown_base,
        fine=fine,
    )


def sides(cell: CellData, metric: MetricData) -> str:
    """Both medians with their unit: 21,876 -> 23,364 ns."""
    unit = f" {metric['unit']}" if metric["unit"] else ""
    return f"{number(cell['base_median'])} -> {number(cell['median'])}{unit}"


def model_and_machine_lines(case: CaseData) -> list[str]:
    """Return a line for each patch that both a model and hardware ran: p: model -36.3% [..], machine -41.0% [..] at 20 CPUs."""
    return [
        f"{plain(row['variant'])}: model {_shift(row['model'])}, machine {_shift(row['machine'])} at {table['cpus']} CPUs"
        f" (experiments {table['model']['experiment']} and {table['machine']['experiment']}, {plain(table['machine']['machine'])})"
        # A lab of an older version sends none.
        for table in case.get("models_and_machines", [])
        for row in table["rows"]
    ]


def _shift(shift: ShiftData) -> str:
    return f"{change(shift['ratio'])} {interval(shift)}".strip()
