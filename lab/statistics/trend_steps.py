# SPDX-License-Identifier: GPL-2.0-or-later
"""Find the steps of a trend, each with size, interval, possible places and certainty.

lab/statistics/change_points.py finds where the steps are. A step's ratio is that of the medians of the levels next
to it, with the interval of Price & Bonett (J. Stat. Comput. Simul. 72(2), 2002), widened for autocorrelation.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, inf, log, log1p, sqrt
from statistics import median

import numpy as np
import scipy
from scipy import special

from lab.statistics.change_points import (
    ALPHA,
    LEAST_REVISIONS,
    LEAST_WITH_BOOTS,
    Array,
    TrendNumbers,
    change_points,
    neighbours,
    p_at,
    sure_places,
)

# Fewer revisions than these do not show how much revisions differ by chance; the spread of boots is used instead.
MANY_REVISIONS = 20
# A place k is plausible while twice its log likelihood is this close to the best's: 1 - (1 - exp(-x/2))^2 = 0.05.
PLAUSIBLE = -2 * log(1 - sqrt(0.95))
TOO_FEW = "too few revisions after it to distinguish a step from an outlier"
ALIKE = (
    "neighbouring revisions are alike here (autocorrelation {rho:.1f}), and such a series wanders as far without a change;"
    " a bisection or more boots of both revisions would decide"
)
# The last revisions stand out when they are further from their level than this many robust deviations.
STANDS_OUT = 4.0
MAD_TO_SD = 1.4826


@dataclass(frozen=True, slots=True)
class TrendStep:
    """A change of level. Indices count revisions; ratios are after over before, None where a level is not above 0.

    at: the first revision after. earliest, latest: `at` lies there with 95 % confidence. p_value: adjusted for all
    places searched; None while `pending` for too few revisions after it. pending, why: not sure yet, and for what reason.
    """

    at: int
    earliest: int
    latest: int
    before: float
    after: float
    ratio: float | None
    low: float | None
    high: float | None
    p_value: float | None
    pending: bool = False
    why: str = ""


def find_steps(revisions: Sequence[Sequence[float]], *, margin: float = 0.0) -> list[TrendStep]:
    """Return the steps of a trend, oldest first; the last one may be pending, and so are those that autocorrelation may explain.

    revisions: for each revision in order its boots, at least one, finite, in the metric's unit. A revision counts as the
    median of its boots; of a trend shorter than MANY_REVISIONS each boot counts, and a step must exceed `margin`, since
    the random difference between revisions is unknown then. margin: a fraction. Raises ValueError.
    """
    if any(not len(boots) for boots in revisions):
        raise ValueError("a revision of a trend needs at least one boot")
    many = len(revisions) >= MANY_REVISIONS or all(len(boots) == 1 for boots in revisions)
    groups = [[median(boots)] for boots in revisions] if many else revisions
    points = np.array([value for boots in groups for value in boots], dtype=float)
    if not np.all(np.isfinite(points)):
        raise ValueError("the boots of a trend must be finite numbers")
    edges = np.cumsum([0, *(len(boots) for boots in groups)])
    trend = TrendNumbers(points, edges, LEAST_REVISIONS if many else LEAST_WITH_BOOTS, correlated=many)
    places = change_points(trend, ALPHA)
    if not many:
        levels = [median(boots) for boots in revisions]
        places = [place for place in places if _lasts(levels, place)]
    margin = 0.0 if many else margin
    steps = [step for step in _described(trend, places) if _matters(step, margin)]
    return [*steps, *_pending(trend, places, margin)]


def _lasts(levels: Sequence[float], place: int) -> bool:
    """Return whether the revisions next to a place, as many as a level must have, are all on their own side of it.

    Otherwise many boots of one outlying revision would make a step.
    """
    before, after = levels[max(0, place - LEAST_WITH_BOOTS) : place], levels[place : place + LEAST_WITH_BOOTS]
    return max(before) < min(after) or max(after) < min(before)


def _described(trend: TrendNumbers, places: list[int]) -> list[TrendStep]:
    sure = sure_places(trend, places)
    rho = _rho(trend.strictly_kept(places)) if len(sure) < len(places) else 0.0
    return [
        _step(trend, start, place, end, "" if place in sure else ALIKE.format(rho=rho))
        for place, (start, end) in zip(places, neighbours(places, trend.revisions), strict=True)
    ]


def _rho(kept: float) -> float:
    """Return the autocorrelation that leaves this fraction of points."""
    return (1 - kept) / (1 + kept)


def _step(trend: TrendNumbers, start: int, place: int, end: int, doubt: str) -> TrendStep:
    edges = trend.edges
    left = trend.points[edges[start] : edges[place]]
    right = trend.points[edges[place] : edges[end]]
    earliest, latest = _plausible(trend, start, end)
    ratio, low, high = _ratio(left, right, trend.kept)
    return TrendStep(
        at=place,
        earliest=min(earliest, place),
        latest=max(latest, place),
        before=float(np.median(left)),
        after=float(np.median(right)),
        ratio=ratio,
        low=low,
        high=high,
        p_value=p_at(trend, start, place, end),
        pending=bool(doubt),
        why=doubt,
    )


def _plausible(trend: TrendNumbers, start: int, end: int) -> tuple[int, int]:
    """Return the first and last plausible place of a step between two others; an approximation for many points."""
    stretch = trend.stretch(start, end)
    sums, counts = stretch.sums[1:-1], stretch.counts[1:-1]
    shares = sums * sums * stretch.points / (counts * (stretch.points - counts) * stretch.squares)
    rest = np.maximum(1 - shares, 1e-12)
    lost = stretch.points * trend.kept * np.log(rest / rest.min())
    near = np.flatnonzero(lost <= PLAUSIBLE)
    return start + 1 + int(near[0]), start + 1 + int(near[-1])


def _ratio(left: Array, right: Array, kept: float) -> tuple[float | None, float | None, float | None]:
    """Ratio of the medians, right over left, with its 95 % interval; None where there is none."""
    ratio = _over(float(np.median(left)), float(np.median(right)))
    if ratio is None or min(left.min(), right.min()) <= 0:
        return ratio, None, None
    spread = sqrt(sum(_median_variance(np.log(side)) for side in (left, right)) / kept)
    half = float(scipy.stats.t.ppf(0.975, max(1.0, (len(left) + len(right)) * kept - 2))) * spread
    return ratio, ratio * exp(-half), ratio * exp(half)


def _over(before: float, after: float) -> float | None:
    """Return the ratio of two levels, None where a float cannot hold it above 0."""
    ratio = after / before if min(before, after) > 0 else 0.0
    return ratio if 0 < ratio < inf else None


def _median_variance(values: Array) -> float:
    """Variance of the median of n >= 2 numbers from two of its order statistics (Price & Bonett)."""
    ranked = np.sort(values)
    count = len(ranked)
    below = max(0, round((count + 1) / 2 - sqrt(count)) - 1)
    inside = 1 - 2 * float(scipy.stats.binom.cdf(below, count, 0.5))
    z = float(special.ndtri((1 + inside) / 2))
    return float((ranked[count - 1 - below] - ranked[below]) / (2 * z)) ** 2


def _pending(trend: TrendNumbers, places: list[int], margin: float) -> list[TrendStep]:
    """Return a step at the first of the last revisions, if these stand out together but are too few to be a level."""
    start = places[-1] if places else 0
    # A short level says little about the spread of revisions, so earlier levels are used too.
    earlier = np.concatenate([np.zeros(0), *(_distances(trend, a, b) for a, b in pairwise([0, *places]))])
    for at in range(start + LEAST_REVISIONS, trend.revisions):
        left = trend.points[trend.edges[start] : trend.edges[at]]
        right = trend.points[trend.edges[at] :]
        before, after = float(np.median(left)), float(np.median(right))
        own = np.abs(left - before)
        spread = MAD_TO_SD * max(float(np.median(own)), float(np.median(np.concatenate([own, earlier]))))
        if trend.revisions - at > trend.least:
            # These may soon be a level of their own, so no earlier revision may be as far away.
            spread = max(spread, float(np.ptp(left)) / STANDS_OUT, float(np.ptp(right)) / STANDS_OUT)
        gap = max(float(right.min()) - before, before - float(right.max()))
        step = TrendStep(
            at, at, at, before, after, _over(before, after), None, None, None, pending=True, why=TOO_FEW
        )
        if gap > STANDS_OUT * spread and _matters(step, margin):
            return [step]
    return []


def _distances(trend: TrendNumbers, start: int, end: int) -> Array:
    """Return how far the points of a level are from its median."""
    points = trend.points[trend.edges[start] : trend.edges[end]]
    return np.asarray(np.abs(points - np.median(points)), dtype=float)


def _matters(step: TrendStep, margin: float) -> bool:
    return step.ratio is None or abs(log(step.ratio)) > log1p(margin)
