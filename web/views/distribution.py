# SPDX-License-Identifier: GPL-2.0-or-later
"""The spread of results, beneath the verdicts: strip plots of boots, and tails of latencies."""

from __future__ import annotations

from dataclasses import dataclass

from lab.comparisons.distribution import TAILS, CaseSpread, MetricSpread, Tail, VariantSpread
from lab.statistics.iterations import Quantile
from web.stripchart import StripPlot, StripRow, strip_plot
from web.words import NONE, count, number, quantity

_CERTAIN = 0.95


@dataclass(frozen=True, slots=True)
class MetricPlot:
    """One metric's strip plot; few: variants whose interval is their boots' range, and what that is worth."""

    metric: str
    unit: str
    primary: bool
    plot: StripPlot
    few: str


@dataclass(frozen=True, slots=True)
class TailLine:
    """One variant's tail: for each quantile its value, and its interval or why there is none."""

    variant: str
    samples: str
    cells: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class SpreadSection:
    """The contents of a case's section."""

    plots: tuple[MetricPlot, ...]
    quantiles: tuple[str, ...]
    tails: tuple[TailLine, ...]


def spread(told: CaseSpread) -> SpreadSection:
    """Put one case's spread into plots and words."""
    return SpreadSection(
        plots=tuple(_plot(one) for one in told.metrics),
        quantiles=tuple(f"p{100 * quantile:g}" for quantile in TAILS) if told.tails else (),
        tails=tuple(_tail(tail, told.unit) for tail in told.tails),
    )


def _plot(told: MetricSpread) -> MetricPlot:
    few = [one.middle.level for one in told.variants if one.middle.level < _CERTAIN]
    return MetricPlot(
        metric=told.metric,
        unit=told.unit,
        primary=told.primary,
        plot=strip_plot([_row(one, told.unit) for one in told.variants], told.unit),
        few=f"{100 * min(few):.0f}" if few else "",
    )


def _row(told: VariantSpread, unit: str) -> StripRow:
    middle = told.middle
    reach = f" ({quantity(middle.low, unit)} to {quantity(middle.high, unit)})" if told.counted > 1 else ""
    return StripRow(
        name=told.variant,
        said=f"{quantity(middle.value, unit)}{reach}, {count(told.counted, 'boot')}{_again(told)}",
        boots=[
            (
                boot.number,
                boot.iterations,
                f"{told.variant}, block {boot.block + 1}: {quantity(boot.number, unit)}, "
                f"{count(len(boot.iterations), 'iteration')}",
                boot.run_id,
            )
            for boot in told.boots
        ],
        middle=middle.value,
        low=middle.low,
        high=middle.high,
    )


def _again(told: VariantSpread) -> str:
    return " with the base's second ones" if told.counted > len(told.boots) else ""


def _tail(told: Tail, unit: str) -> TailLine:
    return TailLine(
        variant=told.variant,
        samples=f"{count(told.samples, 'sample')}, {count(told.boots, 'boot')}",
        cells=tuple(_quantile(one, unit) for one in told.quantiles),
    )


def _quantile(one: Quantile, unit: str) -> tuple[str, str]:
    value = quantity(one.value, unit) if one.value is not None else NONE
    return value, one.why if one.low is None else f"{number(one.low)} to {number(one.high)}"
