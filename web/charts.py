# SPDX-License-Identifier: GPL-2.0-or-later
"""Geometry of the drawings; the templates print it as SVG attributes. Pure: values in, places out."""

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from web.words import number

BAR_WIDTH = 220
_BAR_PAD = 8

# The plot, in the units of its viewBox.
PLOT_WIDTH, PLOT_HEIGHT = 880, 320
DASHES = ("", "7 4", "2 3", "9 3 2 3", "12 5", "4 2")


@dataclass(frozen=True, slots=True)
class Span:
    """Half width of an axis of changes, as a natural logarithm: halving and doubling lie equally far."""

    reach: float
    margin: float

    @property
    def ends(self) -> tuple[float, float]:
        """The ratios at both ends of the axis."""
        return math.exp(-self.reach), math.exp(self.reach)


def span(ratios: Sequence[float | None], margin: float) -> Span:
    """Return an axis that shows all these ratios (up to a factor of 32) and is wider than the margin's band."""
    logs = [abs(math.log(ratio)) for ratio in ratios if ratio and math.isfinite(ratio)]
    return Span(min(max([*logs, 2.5 * math.log1p(margin), 0.005]) * 1.05, math.log(32)), margin)


def bar(axis: Span, low: float, middle: float, high: float) -> dict[str, float]:
    """Place one interval of ratios (1.0 is not a change) on its axis, in pixels from the left.

    cut_low, cut_high: the interval leaves the axis on that side.
    """
    half = BAR_WIDTH / 2 - _BAR_PAD
    reach = axis.reach or 1.0

    def place(ratio: float) -> float:
        log = math.log(ratio) if ratio > 0 else -math.inf
        return round(BAR_WIDTH / 2 + half * max(-1.0, min(1.0, log / reach)), 1)

    band = place(1 / (1 + axis.margin))
    return {
        "low": place(low),
        "high": place(high),
        "middle": place(middle),
        "zero": BAR_WIDTH / 2,
        "band": band,
        "band_width": round(place(1 + axis.margin) - band, 1),
        "cut_low": low <= 0 or math.log(low) < -reach,
        "cut_high": math.isinf(high) or (high > 0 and math.log(high) > reach),
    }


@dataclass(frozen=True, slots=True)
class PlotFrame:
    """The size of a drawing, and the edges of its inside, in the units of its viewBox."""

    left: int
    right: int
    top: int
    bottom: int
    width: int = PLOT_WIDTH
    height: int = PLOT_HEIGHT

    def across(self, share: float) -> float:
        """Return the place of a share of the inside's width."""
        return round(self.left + (self.right - self.left) * share, 1)

    def up(self, share: float) -> float:
        """Return the place of a share of the inside's height, from its bottom."""
        return round(self.bottom - (self.bottom - self.top) * share, 1)


_FRAME = PlotFrame(58, PLOT_WIDTH - 14, 10, PLOT_HEIGHT - 40)


def tick(at: float, label: str) -> dict[str, Any]:
    """Return a mark on an axis."""
    return {"at": at, "label": label}


def pen(index: int) -> dict[str, Any]:
    """Return the style of one variant's line: index picks the colour."""
    return {"index": index % len(DASHES), "dash": DASHES[index % len(DASHES)]}


def histogram(counts: Mapping[str, Mapping[float, int]], x_label: str) -> dict[str, Any]:
    """Outlines of latency histograms, one per variant: value → how often. Both axes are logarithmic.

    Values are gathered into at most 24 classes a decade, so that a microsecond and a millisecond
    read alike. An empty class lies on the floor of the axis, 0.3 of a decade below one sample.
    """
    edges = _edges([value for values in counts.values() for value in values])
    classes = {name: _gather(values, edges) for name, values in counts.items()}
    most = max([2, *(n for levels in classes.values() for n in levels)])
    first, wide = math.log10(edges[0]), math.log10(edges[-1]) - math.log10(edges[0])
    tall = math.log10(most) + 0.4

    def across(value: float) -> float:
        return _FRAME.across((math.log10(value) - first) / wide)

    def down(n: float) -> float:
        return _FRAME.up((math.log10(n) + 0.3 if n else 0.0) / tall)

    lines = []
    for index, (name, levels) in enumerate(classes.items()):
        steps = [f"{across(edges[0])},{down(0)}"]
        for left, end, level in zip(edges, edges[1:], levels, strict=False):
            steps += [f"{across(left)},{down(level)}", f"{across(end)},{down(level)}"]
        steps.append(f"{across(edges[-1])},{down(0)}")
        lines.append({"name": name, "points": " ".join(steps), "samples": sum(levels), **pen(index)})
    powers = range(math.floor(math.log10(most)) + 1)
    return {
        "frame": _FRAME,
        "x_ticks": [tick(across(value), number(value)) for value in _marks(edges[0], edges[-1])],
        "y_ticks": [tick(down(10**power), number(10**power)) for power in powers],
        "lines": lines,
        "x_label": x_label,
    }


_PER_DECADE = 24


def _edges(values: Sequence[float]) -> list[float]:
    """Borders of the classes: logarithmic, but never finer than the whole numbers they hold.

    Without that, small whole numbers would leave every other class empty and the outline a comb.
    """
    positive = [value for value in values if value > 0] or [1.0]
    whole = all(value == int(value) for value in values)
    first = math.floor(math.log10(min(positive)) * _PER_DECADE)
    last = math.floor(math.log10(max(positive)) * _PER_DECADE + 1e-9) + 1
    raw = [10 ** (at / _PER_DECADE) for at in range(first, last + 1)]
    return sorted({float(max(1, math.ceil(edge - 1e-9))) for edge in raw}) if whole else raw


def _gather(values: Mapping[float, int], edges: Sequence[float]) -> list[int]:
    """Return how many samples fall into each class; values that are not above zero join the lowest."""
    levels = [0] * (len(edges) - 1)
    for value, n in values.items():
        at = bisect_right(edges, value) - 1
        levels[min(max(at, 0), len(levels) - 1)] += n
    return levels


def _marks(first: float, last: float) -> list[float]:
    """Marks at 1, 2 and 5 of each decade, only at 1 where the axis is long; on a short one at each digit, or at its ends."""
    powers = range(math.floor(math.log10(first)), math.ceil(math.log10(last)) + 1)
    for steps in ((1, 2, 5) if last / first <= 1000 else (1,), range(1, 10)):
        marks = [
            step * 10.0**power for power in powers for step in steps if first <= step * 10.0**power <= last
        ]
        if len(marks) > 1:
            return marks
    return [first, last]
