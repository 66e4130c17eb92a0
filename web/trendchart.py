# SPDX-License-Identifier: GPL-2.0-or-later
"""Geometry of a trend's chart; the template prints it as SVG attributes. Pure: values in, places out."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from web.charts import PLOT_HEIGHT, PLOT_WIDTH, PlotFrame, tick
from web.words import mark_labels

_FRAME = PlotFrame(66, PLOT_WIDTH - 16, 12, PLOT_HEIGHT - 34)
# More names than these would overlap.
_MOST_NAMES = 8
_SPARK_WIDTH, _SPARK_HEIGHT, _SPARK_PAD = 120, 24, 2


@dataclass(frozen=True, slots=True)
class Dot:
    """One revision to draw: the median of its boots, their ends, its name and text on hover; notes: notes on it."""

    median: float
    low: float
    high: float
    name: str
    title: str
    notes: str = ""


@dataclass(frozen=True, slots=True)
class Jump:
    """A step to draw: the dot it begins with, its verdict, and its text; a pending one is dashed."""

    at: int
    verdict: str
    pending: bool
    title: str


def trend_plot(dots: Sequence[Dot], jumps: Sequence[Jump], levels: Sequence[float]) -> dict[str, Any]:
    """Place dots from left to right, evenly; at least one. levels: the median of each stretch between jumps."""
    marks = round_marks(min(dot.low for dot in dots), max(dot.high for dot in dots))
    first, wide = marks[0], marks[-1] - marks[0]

    def across(index: float) -> float:
        return _FRAME.across((index + 0.5) / len(dots))

    def down(value: float) -> float:
        return _FRAME.up((value - first) / wide)

    every = math.ceil(len(dots) / _MOST_NAMES)
    ends = [0, *(jump.at for jump in jumps), len(dots)]
    return {
        "frame": _FRAME,
        "y_ticks": [tick(down(value), label) for value, label in zip(marks, mark_labels(marks), strict=True)],
        "x_ticks": [tick(across(index), dots[index].name) for index in range(0, len(dots), every)],
        "spots": [
            {
                "x": across(index),
                "y": down(dot.median),
                "low": down(dot.low),
                "high": down(dot.high),
                "title": dot.title,
            }
            for index, dot in enumerate(dots)
        ],
        "levels": [
            {"left": across(start - 0.5), "right": across(end - 0.5), "y": down(level)}
            for start, end, level in zip(ends, ends[1:], levels, strict=False)
        ],
        "marks": [{"x": across(jump.at - 0.5), **asdict(jump)} for jump in jumps],
        "pins": [{"x": across(index), "title": dot.notes} for index, dot in enumerate(dots) if dot.notes],
    }


def spark(values: Sequence[float]) -> str:
    """Points of a small line without axes, 120 × 24; at least one value."""
    low, high = min(values), max(values)
    reach = (high - low) or 1.0
    gap = (_SPARK_WIDTH - 2 * _SPARK_PAD) / max(1, len(values) - 1)
    tall = _SPARK_HEIGHT - 2 * _SPARK_PAD
    return " ".join(
        f"{round(_SPARK_PAD + index * gap, 1)},{round(_SPARK_PAD + tall * (high - value) / reach, 1)}"
        for index, value in enumerate(values)
    )


def round_marks(low: float, high: float) -> list[float]:
    """Three to seven round values that enclose low and high."""
    if high == low:
        low, high = low - (abs(low) * 0.01 or 1.0), high + (abs(high) * 0.01 or 1.0)
    raw = (high - low) / 4
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [step * index for index in range(first, last + 1)]
