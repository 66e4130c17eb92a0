# SPDX-License-Identifier: GPL-2.0-or-later
"""Geometry of a strip plot: every boot of every variant on one axis. Pure: values in, places out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from web.charts import PLOT_WIDTH, PlotFrame, tick
from web.trendchart import round_marks
from web.words import SPACE, mark_labels, quantity

_LEFT, _TOP, _BOTTOM = 36, 6, 24
_ROW, _LABEL = 62, 18
# More faint dots than these say nothing new, and make the page heavy.
MOST_ITERATIONS = 240


@dataclass(frozen=True, slots=True)
class StripRow:
    """The drawing of one variant; boots: number, iterations, title, run. summary: its median in words."""

    name: str
    summary: str
    boots: Sequence[tuple[float, Sequence[float], str, int]]
    middle: float
    low: float
    high: float


def strip_plot(rows: Sequence[StripRow], unit: str) -> dict[str, Any]:
    """Place rows below each other, at least one boot in each; a row's boots go down by block, so drift shows.

    faint: the iterations as a path of points; low, width: the median's interval.
    """
    kept = [_thin([value for _, iterations, _, _ in row.boots for value in iterations]) for row in rows]
    values = [value for row in rows for boot in row.boots for value in (boot[0], *boot[1])]
    marks = round_marks(*_reach(rows, values))
    first, wide = marks[0], marks[-1] - marks[0]
    bottom = _TOP + _ROW * len(rows)
    frame = PlotFrame(_LEFT, PLOT_WIDTH - _LEFT, _TOP, bottom, height=bottom + _BOTTOM)

    def across(value: float) -> float:
        return frame.across(min(1.0, max(0.0, (value - first) / wide)))

    strips = []
    for index, (row, iterations) in enumerate(zip(rows, kept, strict=True)):
        top = _TOP + _ROW * index
        start, room = top + _LABEL + 4, _ROW - _LABEL - 10
        heights = _spread(len(row.boots), start, room)
        faint = _spread(len(iterations), start - 2, room + 4)
        strips.append(
            {
                "name": row.name,
                "summary": row.summary,
                "index": index % 6,
                "label_y": top + 13,
                "bottom": top + _ROW - 4,
                "faint": "".join(
                    f"M{across(value)} {y}h0" for value, y in zip(iterations, faint, strict=True)
                ),
                "dots": [
                    {"x": across(value), "y": y, "title": title, "run_id": run}
                    for (value, _, title, run), y in zip(row.boots, heights, strict=True)
                ],
                "middle": across(row.middle),
                "low": across(row.low),
                "width": max(1.0, round(across(row.high) - across(row.low), 1)),
                "tall": _ROW - _LABEL - 4,
            }
        )
    return {
        "frame": frame,
        "ticks": [
            tick(across(value), label) for value, label in zip(marks, _labels(marks, unit), strict=True)
        ],
        "strips": strips,
    }


def _labels(marks: Sequence[float], unit: str) -> list[str]:
    """Return the marks' labels, without a unit where it is the metric's own, which the heading says."""
    labels = [quantity(value, unit) for value in marks]
    own = unit and all(label.endswith(f"{SPACE}{unit}") for label in labels)
    return mark_labels(marks) if own or len(set(labels)) < len(labels) else labels


def _reach(rows: Sequence[StripRow], values: Sequence[float]) -> tuple[float, float]:
    """Return the axis's ends: all boots, and iterations within three times the boots' span: one outlier must not hide the rest."""
    boots = [boot[0] for row in rows for boot in row.boots]
    low, high = min(boots), max(boots)
    room = (high - low) or abs(high) * 0.02 or 1.0
    return max(min(values), low - room), min(max(values), high + room)


def _thin(values: list[float]) -> list[float]:
    every = max(1, -(-len(values) // MOST_ITERATIONS))
    return values[::every]


def _spread(count: int, start: float, room: float) -> list[float]:
    return [round(start + room * (at + 0.5) / max(1, count), 1) for at in range(count)]
