# SPDX-License-Identifier: GPL-2.0-or-later
"""The spread of results, beneath the verdicts: strip plots of boots, and tails of latencies."""

from typing import Any

from lab.comparisons.distribution import TAILS, CaseSpread, MetricSpread, Tail, VariantSpread
from lab.statistics.quantiles import Quantile
from web.stripchart import StripRow, strip_plot
from web.words import NONE, count, number, quantity

_CERTAIN = 0.95


def spread(told: CaseSpread) -> dict[str, Any]:
    """Put one case's spread into plots and words: its strip plots, and the tails of its latencies."""
    return {
        "plots": [_plot(one) for one in told.metrics],
        "quantiles": [f"p{100 * quantile:g}" for quantile in TAILS] if told.tails else [],
        "tails": [_tail(tail, told.unit) for tail in told.tails],
    }


def _plot(told: MetricSpread) -> dict[str, Any]:
    """Return one metric's strip plot; few: what the range of so few boots is worth, in percent."""
    few = [one.middle.level for one in told.variants if one.middle.level < _CERTAIN]
    return {
        "metric": told.metric,
        "unit": told.unit,
        "primary": told.primary,
        "plot": strip_plot([_row(one, told.unit) for one in told.variants], told.unit),
        "few": f"{100 * min(few):.0f}" if few else "",
    }


def _row(told: VariantSpread, unit: str) -> StripRow:
    middle = told.middle
    reach = f" ({quantity(middle.low, unit)} to {quantity(middle.high, unit)})" if told.counted > 1 else ""
    return StripRow(
        name=told.variant,
        summary=f"{quantity(middle.value, unit)}{reach}, {count(told.counted, 'boot')}{_again(told)}",
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


def _tail(told: Tail, unit: str) -> dict[str, Any]:
    """Return one variant's tail: for each quantile its value, and its interval or why there is none."""
    return {
        "variant": told.variant,
        "samples": f"{count(told.samples, 'sample')}, {count(told.boots, 'boot')}",
        "cells": [_quantile(one, unit) for one in told.quantiles],
    }


def _quantile(one: Quantile, unit: str) -> tuple[str, str]:
    value = quantity(one.value, unit) if one.value is not None else NONE
    return value, one.why if one.low is None else f"{number(one.low)} to {number(one.high)}"
