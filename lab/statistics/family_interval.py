# SPDX-License-Identifier: GPL-2.0-or-later
"""Adjust p values and intervals for the other metrics that are read together."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import isfinite

import scipy

from lab.statistics.arms import Shift
from lab.statistics.verdict import FALSE_DISCOVERIES, Verdict, lie, with_boots


def agreeing_level(p_value: float, q_value: float) -> float:
    """Return the level at which an interval holds "no change" if, and only if, the q-value is above 5 %."""
    return 1 - FALSE_DISCOVERIES * p_value / q_value


def allow_for_family(
    verdict: Verdict,
    shift: Shift,
    q_value: float | None,
    *,
    metrics: int,
    at_level: Callable[..., Shift],
    unit: str = "",
) -> tuple[Verdict, Shift]:
    """Return a verdict and its shift; if the q-value held the verdict back, with the wider interval and both in words.

    metrics: the number adjusted for. at_level: estimates the same shift with an interval of another `level`.
    """
    if not verdict.held_back or not shift.p_value or not q_value:
        return verdict, shift
    level = agreeing_level(shift.p_value, q_value)
    wider = at_level(level=level)
    said = f"significant alone (p = {shift.p_value:.2g}), not among {metrics} metrics (q = {q_value:.2g})"
    if shift.ranked is not None:
        ranked = wider.ranked or shift.ranked
        # The typical difference's own interval may leave out 0; the wider one does not.
        ranked = (
            ranked
            if ranked.low is None or ranked.low <= 0 <= (ranked.high or 0)
            else replace(ranked, low=None)
        )
        reason = f"{shift.why}; {lie(ranked, unit)}; {said}"
        return replace(verdict, reason=with_boots(reason, verdict.boots_needed)), replace(
            shift, ranked=ranked
        )
    if not _agrees(wider, shift):
        said = f"{said}; the interval is that of this metric alone"
        return replace(verdict, reason=with_boots(said, verdict.boots_needed)), shift
    alone = f"{_percent(shift.low)} to {_percent(shift.high)}"
    said = f"{said}: the interval, of {100 * level:.3g} %, allows for them; alone it is {alone}"
    shown = replace(shift, low=wider.low, high=wider.high)
    return replace(verdict, reason=with_boots(said, verdict.boots_needed)), shown


def _agrees(wider: Shift, shift: Shift) -> bool:
    """Return whether the wider interval comes from the same method and holds "no change"; ranks may no longer bound a shift."""
    if wider.low is None or wider.high is None:
        return False
    return wider.p_value == shift.p_value and wider.low <= 1 <= wider.high


def _percent(ratio: float | None) -> str:
    return "?" if ratio is None else f"{100 * (ratio - 1):+.1f} %"


def adjust(p_values: Sequence[float | None]) -> list[float | None]:
    """Return q-values in the same order; None (or not a number) stays None and does not count.

    A family is read together: the metrics of all cases of one variant.
    """
    known = [p for p in p_values if p is not None and isfinite(p)]
    adjusted = iter(scipy.stats.false_discovery_control(known, method="bh").tolist() if known else [])
    return [float(next(adjusted)) if p is not None and isfinite(p) else None for p in p_values]
