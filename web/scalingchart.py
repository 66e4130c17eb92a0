# SPDX-License-Identifier: GPL-2.0-or-later
"""Geometry of a scaling curve, a line a variant over the number of CPUs; a template prints it as SVG.

Pure: values in, places out. Both axes are logarithmic, so that twice the CPUs and twice the slowdown are equal steps.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from web.charts import DASHES, PLOT_HEIGHT, PLOT_WIDTH, PlotFrame, Tick
from web.words import number

_FRAME = PlotFrame(58, PLOT_WIDTH - 16, 12, PLOT_HEIGHT - 40)
_LEAST_REACH = 2.0


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """One number of CPUs of a variant; title is shown on hover."""

    x: float
    y: float
    title: str


@dataclass(frozen=True, slots=True)
class Curve:
    """One variant; index picks its colour, dash its pattern, d is the path through its points."""

    name: str
    index: int
    dash: str
    d: str
    points: tuple[CurvePoint, ...]


@dataclass(frozen=True, slots=True)
class ScalingPlot:
    """A whole chart, in the units of its viewBox, and its data as rows: CPUs, then a value of each curve or "–"."""

    frame: PlotFrame
    y_ticks: tuple[Tick, ...]
    x_ticks: tuple[Tick, ...]
    curves: tuple[Curve, ...]
    rows: tuple[tuple[int, tuple[str, ...]], ...]


def scaling_plot(variants: Mapping[str, Mapping[int, float]]) -> ScalingPlot | None:
    """Place the curves of variants: name → CPUs → slowdown against one CPU alone, 1 or more.

    Values that are no positive numbers are left out; None where nothing is left.
    """
    kept = {name: dict(sorted(_drawable(values).items())) for name, values in variants.items()}
    counts = sorted({cpus for values in kept.values() for cpus in values})
    if not counts:
        return None
    highest = max(_LEAST_REACH, *(value for values in kept.values() for value in values.values()))
    lowest = min(1.0, *(value for values in kept.values() for value in values.values()))
    reach = math.log(max(2, counts[-1] / counts[0]))

    def across(cpus: int) -> float:
        return _FRAME.across(math.log(cpus / counts[0]) / reach)

    def up(value: float) -> float:
        return _FRAME.up(math.log(value / lowest) / math.log(highest / lowest))

    curves = []
    for index, (name, values) in enumerate(kept.items()):
        points = tuple(
            CurvePoint(across(cpus), up(value), f"{name}, {cpus} CPUs: {number(value)} times")
            for cpus, value in values.items()
        )
        path = "L".join(f"{point.x} {point.y}" for point in points)
        curves.append(
            Curve(name, index % len(DASHES), DASHES[index % len(DASHES)], f"M{path}" if path else "", points)
        )
    return ScalingPlot(
        _FRAME,
        tuple(Tick(up(value), f"{value:g}×") for value in _steps(lowest, highest)),
        tuple(Tick(across(cpus), str(cpus)) for cpus in counts),
        tuple(curves),
        tuple((cpus, tuple(_said(values.get(cpus)) for values in kept.values())) for cpus in counts),
    )


def _drawable(values: Mapping[int, float]) -> dict[int, float]:
    return {cpus: value for cpus, value in values.items() if cpus >= 1 and math.isfinite(value) and value > 0}


def _steps(lowest: float, highest: float) -> Sequence[float]:
    """Powers of two from the lowest to the highest, never more than ten."""
    first, last = math.ceil(math.log2(lowest) - 1e-9), math.floor(math.log2(highest) + 1e-9)
    stride = max(1, math.ceil((last - first + 1) / 10))
    return [2.0**power for power in range(first, last + 1, stride)]


def _said(value: float | None) -> str:
    return "–" if value is None else number(value)
