# SPDX-License-Identifier: GPL-2.0-or-later
"""The spread of results, beneath the verdicts: strip plots of boots, and tails of latencies."""

from typing import Any

from lab.comparisons.distribution import TAILS, CaseSpread, MetricSpread, Tail, VariantSpread
from lab.statistics.quantiles import Quantile
from web.stripchart import StripRow, strip_plot
from web.words import NONE, between, count, number, quantity

_CERTAIN = 0.95


def spread(case: CaseSpread) -> dict[str, Any]:
    """Put one case's spread into plots and words: its strip plots, and the tails of its latencies."""
    return {
        "plots": [_plot(metric) for metric in case.metrics],
        "quantiles": [f"p{100 * quantile:g}" for quantile in TAILS] if case.tails else [],
        "tails": [_tail(tail, case.unit) for tail in case.tails],
    }


def _plot(metric: MetricSpread) -> dict[str, Any]:
    """Return one metric's strip plot; few: the confidence of the ranges in percent, if few boots keep it below 95."""
    few = [variant.middle.level for variant in metric.variants if variant.middle.level < _CERTAIN]
    return {
        "metric": metric.metric,
        "unit": metric.unit,
        "primary": metric.primary,
        "plot": strip_plot([_row(variant, metric.unit) for variant in metric.variants], metric.unit),
        "few": f"{100 * min(few):.0f}" if few else "",
    }


def _row(variant: VariantSpread, unit: str) -> StripRow:
    middle = variant.middle
    reach = f" ({between(middle.low, middle.high, unit)})" if variant.counted > 1 else ""
    return StripRow(
        name=variant.variant,
        summary=f"{quantity(middle.value, unit)}{reach}, {count(variant.counted, 'boot')}{_again(variant)}",
        boots=[
            (
                boot.number,
                boot.iterations,
                f"{variant.variant}, block {boot.block + 1}: {quantity(boot.number, unit)}, "
                f"{count(len(boot.iterations), 'iteration')}",
                boot.run_id,
            )
            for boot in variant.boots
        ],
        middle=middle.value,
        low=middle.low,
        high=middle.high,
    )


def _again(variant: VariantSpread) -> str:
    return " with the base's second ones" if variant.counted > len(variant.boots) else ""


def _tail(tail: Tail, unit: str) -> dict[str, Any]:
    """Return one variant's tail: for each quantile its value, and its interval or why there is none."""
    return {
        "variant": tail.variant,
        "samples": f"{count(tail.samples, 'sample')}, {count(tail.boots, 'boot')}",
        "cells": [_quantile(quantile, unit) for quantile in tail.quantiles],
    }


def _quantile(quantile: Quantile, unit: str) -> tuple[str, str]:
    value = quantity(quantile.value, unit) if quantile.value is not None else NONE
    return (
        value,
        quantile.why if quantile.low is None else f"{number(quantile.low)} to {number(quantile.high)}",
    )
