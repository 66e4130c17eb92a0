# SPDX-License-Identifier: GPL-2.0-or-later
"""Find where the level of a trend changes.

The statistic is a correlation. A stretch of the trend is ranked, ranks become normal scores (so that an outlier counts
as the largest value, no more), and the scores are correlated with "is it after k", for every k at once by prefix sums;
or with "is it within this window", for a level that came and went. Student's t of the best correlation has n - 2 degrees
of freedom for n effective points; autocorrelation rho leaves (1-rho)/(1+rho) of the points.
Its p-value is never below that of the most extreme permutation, and is multiplied by the number of places searched.

Stretches are split while a weak test allows it (binary segmentation); then every step must pass the strict one between
its neighbours, the worst is dropped and its neighbours are retried. O(n log n) for each level of splitting.

Sources: Chernoff & Savage, Ann. Math. Stat. 29(4), 1958 (normal scores lose nothing against t); Kovács et al., Seeded
binary segmentation, Biometrika 110(1), 2023 (windows of doubling length); Hall & Van Keilegom, JRSS B 65(2), 2003
(autocorrelation from differences, which steps hardly touch). bench/trends.py measures errors and time beside Otava's.
"""

from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import pairwise
from math import exp, lgamma, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy import special

Array = NDArray[np.float64]
Counts = NDArray[np.intp]

# The highest rate at which whole trends without any change may show a step.
ALPHA = 0.01
WEAK = 0.02
# Independent places for each revision searched: fewer than 1, as neighbouring places share most of their points.
STEP_SEARCH, WINDOW_SEARCH = 0.45, 0.9
# Levels of fewer revisions are outliers: if revisions have one number each, and if they have several boots each.
LEAST_REVISIONS, LEAST_WITH_BOOTS = 3, 2
# Differences over this many points are nearly free of autocorrelation, and few of them straddle a step.
FAR = 4
KEPT_DIFFERENCES = 0.95
MOST_RHO = 0.95
# Of n points, autocorrelation up to this over the root of n is taken for the estimate's own noise (about one standard
# error): counting it would cost every quiet trend a tenth of its power.
DOUBT = 1.5
# A step is sure if it also passes with the whole estimate of autocorrelation, where that exceeds SHOWN standard errors (one over
# the root of n). A true step makes neighbours look alike, too; so the estimate is capped at the autocorrelation left within the
# levels, plus HIDDEN standard errors for what taking the levels away hides.
SHOWN, HIDDEN = 1.0, 1.0
# Two levels are separate if the gap between them is at least this many times the larger range of their points. Autocorrelated
# noise leaves no such gap, so a step there is tested without autocorrelation and without a factor for the search.
SEPARATE = 1.0


@dataclass(frozen=True, slots=True)
class Stretch:
    """Normal scores of some revisions of a trend, summed up to each edge; both arrays have shape (revisions + 1,).

    counts: points up to each edge. squares: sum of all squared scores. scores: shape (points,).
    """

    start: int
    sums: Array
    counts: Array
    squares: float
    scores: Array

    @property
    def points(self) -> float:
        """All of its points."""
        return float(self.counts[-1])


@dataclass
class TrendNumbers:
    """points: all numbers in order, shape (points,). edges, shape (revisions + 1,): where each revision begins.

    least: the fewest revisions of a level, or it is an outlier. correlated: whether neighbouring points may be alike;
    interleaved boots of few revisions are not, and steps would be taken for autocorrelation there.
    """

    points: Array
    edges: Counts
    least: int
    correlated: bool = True
    _stretches: dict[tuple[int, int], Stretch] = field(default_factory=dict)

    @property
    def revisions(self) -> int:
        """Return the number of revisions."""
        return len(self.edges) - 1

    @cached_property
    def kept(self) -> float:
        """Return the effective fraction of points under autocorrelation."""
        rho = autocorrelation(self.stretch(0, self.revisions).scores) if self.correlated else 0.0
        return (1 - rho) / (1 + rho)

    def strictly_kept(self, places: list[int]) -> float:
        """Return the effective fraction of points under the whole autocorrelation, less the part that steps at `places` make."""
        scores = self.stretch(0, self.revisions).scores
        if not self.correlated or whole_autocorrelation(scores) <= SHOWN / sqrt(len(scores)):
            return self.kept
        ends = [0, *places, self.revisions]
        levels = [scores[self.edges[a] : self.edges[b]] for a, b in pairwise(ends)]
        left = np.concatenate([level - level.mean() for level in levels])
        within = float(left[1:] @ left[:-1]) / max(float(left @ left), 1e-12)
        rho = min(whole_autocorrelation(scores), max(0.0, within + HIDDEN / sqrt(len(scores))))
        return min(self.kept, (1 - rho) / (1 + rho))

    def separate(self, start: int, end: int) -> int | None:
        """Return the place between `start` and `end` that parts two levels far from each other; None without one."""
        if not self.correlated or end - start < 2 * self.least:
            return None
        points = self.points[start:end]
        low, high = np.minimum.accumulate(points)[:-1], np.maximum.accumulate(points)[:-1]
        low_after, high_after = (
            function.accumulate(points[::-1])[::-1][1:] for function in (np.minimum, np.maximum)
        )
        gaps = np.maximum(low_after - high, low - high_after)[self.least - 1 : len(points) - self.least]
        ranges = np.maximum(high - low, high_after - low_after)[self.least - 1 : len(points) - self.least]
        clear = np.flatnonzero((gaps > 0) & (gaps >= SEPARATE * ranges))
        return start + self.least + int(clear[gaps[clear].argmax()]) if clear.size else None

    def stretch(self, start: int, end: int) -> Stretch:
        """Revisions start to end - 1, ranked among themselves."""
        if (start, end) not in self._stretches:
            edges = self.edges[start : end + 1] - self.edges[start]
            scores = _normal_scores(self.points[self.edges[start] : self.edges[end]])
            sums = np.zeros(len(scores) + 1)
            np.cumsum(scores, out=sums[1:])
            stretch = Stretch(start, sums[edges], edges.astype(float), float(scores @ scores), scores)
            self._stretches[start, end] = stretch
        return self._stretches[start, end]


def steps_of(values: Array, *, alpha: float = ALPHA) -> list[int]:
    """Return the first revision after each sure step, for a trend with one number a revision; shape (n,), finite."""
    trend = TrendNumbers(values, np.arange(len(values) + 1), LEAST_REVISIONS)
    return sure_places(trend, change_points(trend, alpha), alpha)


def sure_places(trend: TrendNumbers, places: list[int], alpha: float = ALPHA) -> list[int]:
    """Return the places of steps that the wandering of an autocorrelated series does not explain."""
    if not places:
        return []
    kept = trend.strictly_kept(places)
    ends = neighbours(places, trend.revisions)
    return [
        at
        for at, (start, end) in zip(places, ends, strict=True)
        if p_at(trend, start, at, end, kept) <= alpha
    ]


def change_points(trend: TrendNumbers, alpha: float = ALPHA) -> list[int]:
    """Return the first revision after each step, in order. alpha: false alarms in a whole trend without a step."""
    if trend.revisions < 2 * trend.least:
        return []
    places = _prune(trend, sorted(set(_split(trend))), alpha)
    moved = sorted({_best(trend, *ends) for ends in neighbours(places, trend.revisions)})
    return places if moved == places else _prune(trend, moved, alpha)


def neighbours(places: list[int], revisions: int) -> list[tuple[int, int]]:
    """Return for each place where the level before it begins and the level after it ends."""
    ends = [0, *places, revisions]
    return list(zip(ends, ends[2:], strict=False))


def p_at(trend: TrendNumbers, start: int, place: int, end: int, kept: float | None = None) -> float:
    """Return the p-value of a step between two others, adjusted for the search. kept: the trend's if None."""
    stretch = trend.stretch(start, end)
    if stretch.squares == 0:
        return 1.0
    total, part = float(stretch.sums[place - start]), float(stretch.counts[place - start])
    share = total * total / (part * (stretch.points - part))
    return _p_of_step(trend, stretch, place - start, share, part, kept)


def _split(trend: TrendNumbers) -> list[int]:
    """Places of a liberal binary segmentation."""
    splits: list[int] = []
    waiting = [(0, trend.revisions)]
    while waiting:
        start, end = waiting.pop()
        if end - start < 2 * trend.least:
            continue
        stretch = trend.stretch(start, end)
        places = _split_once(trend, stretch) if stretch.squares > 0 else []
        if places:
            splits += places
            ends = [start, *places, end]
            waiting += list(pairwise(ends))
    return splits


def _split_once(trend: TrendNumbers, stretch: Stretch) -> list[int]:
    """The best single step of a stretch, or the two ends of its best window, or nothing."""
    place, share, part = _best_step(trend, stretch)
    p_step = _p_of_step(trend, stretch, place, share, part)
    first, last, share, part = _best_window(trend, stretch)
    p_window = _p_value(trend, stretch, share, part, WINDOW_SEARCH)
    if min(p_step, p_window) > WEAK:
        return []
    ends = (place,) if p_step <= p_window else (first, last)
    inner = (trend.least, len(stretch.sums) - 1 - trend.least)
    return [stretch.start + at for at in ends if inner[0] <= at <= inner[1]]


def _best_step(trend: TrendNumbers, stretch: Stretch) -> tuple[int, float, float]:
    """Return where one step explains most: revisions before it, what it explains (see _p_value), points before it.

    Of two levels far from each other it is the place between them: ranks alone may prefer a neighbouring place, whose
    point happens to be next in rank.
    """
    inner = slice(trend.least, len(stretch.sums) - trend.least)
    sums, counts = stretch.sums[inner], stretch.counts[inner]
    shares = sums * sums / (counts * (stretch.points - counts))
    between = trend.separate(stretch.start, stretch.start + len(stretch.sums) - 1)
    best = int(shares.argmax()) if between is None else between - stretch.start - trend.least
    return best + trend.least, float(shares[best]), float(counts[best])


def _best_window(trend: TrendNumbers, stretch: Stretch) -> tuple[int, int, float, float]:
    """The window that differs most from the rest: its first revision, one past its last, the rest as above."""
    revisions = len(stretch.sums) - 1
    window = (0, revisions, 0.0, 0.0)
    length = trend.least
    while length <= revisions // 2:
        sums = stretch.sums[length:] - stretch.sums[:-length]
        # Of windows with equally many revisions the largest sum is the best, apart from unequal numbers of boots.
        for best in (int(sums.argmax()), int(sums.argmin())):
            part = float(stretch.counts[best + length] - stretch.counts[best])
            share = float(sums[best]) ** 2 / (part * (stretch.points - part))
            if share > window[2]:
                window = (best, best + length, share, part)
        length *= 2
    return window


def _p_of_step(
    trend: TrendNumbers, stretch: Stretch, place: int, share: float, part: float, kept: float | None = None
) -> float:
    """Return _p_value of a step after `place` revisions of a stretch."""
    start, end = stretch.start, stretch.start + len(stretch.sums) - 1
    if trend.separate(start, end) == start + place:
        return _p_value(trend, stretch, share, part, 0.0, kept=1.0)
    return _p_value(trend, stretch, share, part, STEP_SEARCH, kept)


def _p_value(
    trend: TrendNumbers, stretch: Stretch, share: float, part: float, search: float, kept: float | None = None
) -> float:
    """Probability that chance alone explains so much of a stretch by setting `part` of its points apart.

    share: the part's squared sum of scores over (part × the other points); times points over squares, it is the
    squared correlation. search: independent places a revision. kept: what autocorrelation leaves, the trend's if None.
    """
    kept = trend.kept if kept is None else kept
    effective, part = stretch.points * kept, part * kept
    freedom = effective - 2
    if freedom <= 0 or part <= 0:
        return 1.0
    explained = share * stretch.points / stretch.squares
    t = sqrt(explained * freedom / max(1 - explained, 1e-12))
    choices = lgamma(effective + 1) - lgamma(part + 1) - lgamma(effective - part + 1)
    alone = max(2 * float(special.stdtr(freedom, -t)), 2 * exp(-choices))
    return min(1.0, alone * max(1.0, search * trend.revisions))


def _best(trend: TrendNumbers, start: int, end: int) -> int:
    """The best place for one step between two others."""
    stretch = trend.stretch(start, end)
    return start + _best_step(trend, stretch)[0]


def _prune(trend: TrendNumbers, places: list[int], alpha: float) -> list[int]:
    """Drop the worst place, until each passes the test between its neighbours."""
    kept = list(places)
    while kept:
        asked = zip(kept, neighbours(kept, trend.revisions), strict=True)
        tests = {at: p_at(trend, start, at, end) for at, (start, end) in asked}
        worst = max(kept, key=tests.__getitem__)
        if tests[worst] <= alpha:
            return kept
        kept.remove(worst)
    return kept


def autocorrelation(scores: Array) -> float:
    """Estimate the autocorrelation of neighbouring points, 0 to MOST_RHO, whatever steps there are.

    Of an AR(1) series the mean square of differences over m points is 2 variances times 1 - rho^m. The largest
    twentieth of the squares is left out of both means: those that straddle steps. scores: shape (points,), bounded.
    """
    return max(0.0, whole_autocorrelation(scores) - DOUBT / sqrt(max(len(scores), 1)))


def whole_autocorrelation(scores: Array) -> float:
    """Return that estimate without the deduction of its own noise."""
    if len(scores) < 4 * FAR:
        return 0.0
    near, far = (_trimmed_mean_square(scores[by:] - scores[:-by]) for by in (1, FAR))
    if near == 0:
        return 0.0  # exact counts: nothing but steps
    return float(np.interp(far / near, *_rho_table()))


def _trimmed_mean_square(differences: Array) -> float:
    squares = differences * differences
    kept = int(KEPT_DIFFERENCES * len(squares))
    return float(np.partition(squares, kept)[:kept].mean())


@lru_cache(maxsize=1)
def _rho_table() -> tuple[Array, Array]:
    """Return ratios of far to near mean squares, and the rho of the AR(1) series with each ratio."""
    rho = np.linspace(0.0, MOST_RHO, 96)
    return np.sum(rho[:, None] ** np.arange(FAR), axis=1), rho


def _normal_scores(values: Array) -> Array:
    """Expected values of ranked normal numbers (Blom), equal values sharing theirs; their sum is 0."""
    order = values.argsort()
    ranked = values[order]
    table = _score_table(len(values))
    if (ranked[1:] == ranked[:-1]).any():
        # Rounding would leave a trace of scores where all values are equal.
        return np.zeros(len(values)) if ranked[0] == ranked[-1] else _shared_scores(values, table)
    scores = np.empty(len(values))
    scores[order] = table
    return scores


def _shared_scores(values: Array, table: Array) -> Array:
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    sums = np.concatenate([[0.0], np.cumsum(table)])
    shared: Array = ((sums[ends] - sums[ends - counts]) / counts)[group]
    return shared


@lru_cache(maxsize=1024)
def _score_table(count: int) -> Array:
    return np.asarray(special.ndtri((np.arange(1, count + 1) - 0.375) / (count + 0.25)), dtype=float)
