# SPDX-License-Identifier: GPL-2.0-or-later
"""Geometry of a scaling curve, a line a variant over the number of CPUs; a template prints it as SVG.

Pure: values in, places out. Both axes are logarithmic, so that twice the CPUs and twice the slowdown are equal steps.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from web.charts import PLOT_HEIGHT, PLOT_WIDTH, PlotFrame, pen, tick
from web.words import number

_FRAME = PlotFrame(58, PLOT_WIDTH - 16, 12, PLOT_HEIGHT - 40)
_LEAST_REACH = 2.0


def scaling_plot(variants: Mapping[str, Mapping[int, float]]) -> dict[str, Any] | None:
    """Place the curves of variants: name → CPUs → slowdown against one CPU alone, 1 or more.

    Values that are not positive numbers are left out; None where nothing is left.
    rows: the same data, CPUs and then a value of each curve or "–".
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
        points = [
            {"x": across(cpus), "y": up(value), "title": f"{name}, {cpus} CPUs: {number(value)} times"}
            for cpus, value in values.items()
        ]
        path = "L".join(f"{point['x']} {point['y']}" for point in points)
        curves.append({"name": name, "d": f"M{path}" if path else "", "points": points, **pen(index)})
    return {
        "frame": _FRAME,
        "y_ticks": [tick(up(value), f"{value:g}×") for value in _steps(lowest, highest)],
        "x_ticks": [tick(across(cpus), str(cpus)) for cpus in counts],
        "curves": curves,
        "rows": [(cpus, [_figure(values.get(cpus)) for values in kept.values()]) for cpus in counts],
    }


def _drawable(values: Mapping[int, float]) -> dict[int, float]:
    return {cpus: value for cpus, value in values.items() if cpus >= 1 and math.isfinite(value) and value > 0}


def _steps(lowest: float, highest: float) -> Sequence[float]:
    """Powers of two from the lowest to the highest, never more than ten."""
    first, last = math.ceil(math.log2(lowest) - 1e-9), math.floor(math.log2(highest) + 1e-9)
    stride = max(1, math.ceil((last - first + 1) / 10))
    return [2.0**power for power in range(first, last + 1, stride)]


def _figure(value: float | None) -> str:
    return "–" if value is None else number(value)
