# SPDX-License-Identifier: GPL-2.0-or-later
"""Judge one metric: regression, improvement, unchanged or inconclusive.

The rule, in words. The shift of a metric is the ratio candidate over base with an interval, of 95 % unless
looks at unfinished data make it wider. The metric has a margin: a relative change too small to matter, such as
2 %. The experiment has a floor: what code layout alone moves this metric by, measured by a placebo, else 0.

1. Is the whole interval within the margin (from 1/(1+margin) to 1+margin)? Then **unchanged**, even if it
   excludes "no change": a difference that is real and does not matter. A margin of 0 is never met.
2. Otherwise, does the interval exclude "no change" (a ratio of 1), is the q-value (the p-value adjusted for the
   number of metrics) at most 5 % where there is one, and is the shift larger than the floor? Then
   **regression** or **improvement**, by the direction in which the metric is better.
3. Otherwise **inconclusive**, with the number of boots it would take: the interval narrows with more boots, and must
   become narrow enough either to exclude 1 or to lie within the margin, whichever comes first if the
   ratio stays where it is. It is an estimate. A shift within the floor has none: boots do not help.
4. Some boots are 0, so there is no ratio: do ranks tell the sides apart, by the p-value and the q-value? Then
   **regression** or **improvement**; the reason gives the difference in the metric's unit. The margin and the floor
   are ratios and have no part in it.
5. No ratio or no interval otherwise is inconclusive, and says why. An interval takes two blocks.

No verdict is a promise: with no change at all, one metric in twenty has an interval that excludes 1.
"""

from dataclasses import dataclass
from math import ceil, log, log1p, sqrt
from typing import Literal

import scipy

from lab.statistics.arms import Shift
from lab.statistics.verdict_words import Word
from lab.statistics.zeros import Ranked

Better = Literal["lower", "higher"]
LEAST_BLOCKS = 2
FALSE_DISCOVERIES = 0.05
# No experiment boots this often: an estimate beyond this only says that more boots do not help.
MOST_BOOTS = 100_000


@dataclass(frozen=True, slots=True)
class Verdict:
    """One of four words; boots_needed and reason for those that are inconclusive.

    held_back: clear by itself, but not among all metrics (family_interval.py says so and widens the interval).
    """

    word: Word
    boots_needed: int | None = None
    reason: str = ""
    held_back: bool = False


def judge(
    shift: Shift,
    *,
    better: Better,
    margin: float,
    floor: float = 0.0,
    q_value: float | None = None,
    level_used: float = 0.05,
    unit: str = "",
) -> Verdict:
    """Apply the rule of this module. margin, floor: fractions >= 0, such as 0.02.

    level_used: 1 - level of the shift's interval. q_value: from adjust(), None without a p-value. unit: the metric's.
    """
    if shift.ranked is not None and shift.p_value is not None:
        return _by_order(shift, shift.ranked, shift.p_value, better, q_value, level_used, unit)
    if shift.ratio is None or shift.low is None or shift.high is None:
        return Verdict("inconclusive", _boots_for_an_interval(shift, level_used), shift.why)
    edge, low, high = log1p(margin), log(shift.low), log(shift.high)
    if margin > 0 and -edge <= low and high <= edge:
        return Verdict("unchanged")
    if low <= 0 <= high:
        needed = boots_needed(shift, margin=margin, level_used=level_used)
        return Verdict("inconclusive", needed, _unclear(needed, margin))
    if abs(log(shift.ratio)) <= log1p(floor):
        return Verdict(
            "inconclusive", None, f"smaller than the effect of code layout alone here (±{floor:.2%})"
        )
    if q_value is not None and q_value > FALSE_DISCOVERIES:
        needed = _boots_for_adjustment(shift, q_value)
        said = f"not significant among this many metrics (q = {q_value:.2g})"
        return Verdict("inconclusive", needed, with_boots(said, needed), held_back=True)
    return Verdict("regression" if (low > 0) == (better == "lower") else "improvement")


def _by_order(
    shift: Shift,
    ranked: Ranked,
    p_value: float,
    better: Better,
    q_value: float | None,
    level_used: float,
    unit: str,
) -> Verdict:
    """Return the verdict where some boots are 0, with what is known in place of a ratio."""
    said = f"{shift.why}; {lie(ranked, unit)}"
    if p_value <= level_used and (q_value is None or q_value <= FALSE_DISCOVERIES):
        return Verdict("regression" if ranked.rises == (better == "lower") else "improvement", None, said)
    wanted = level_used if q_value is None else min(level_used, p_value * FALSE_DISCOVERIES / q_value)
    needed = _boots_for_p(shift, p_value, wanted)
    if p_value <= level_used and q_value is not None:
        said = f"{said}; not significant among this many metrics (q = {q_value:.2g})"
        return Verdict("inconclusive", needed, with_boots(said, needed), held_back=True)
    return Verdict("inconclusive", needed, with_boots(f"{said}; ranks do not separate them", needed))


def lie(ranked: Ranked, unit: str) -> str:
    """Say in words how the candidate's boots compare with the base's."""
    pairs = f"a boot is above the base's in {ranked.above:.0%} of pairs and below in {ranked.below:.0%}"
    unit = f" {unit}" if unit else ""
    if ranked.low is None or ranked.high is None:
        return f"{pairs}; the means differ by {ranked.difference:+.4g}{unit}"
    span = f"{ranked.low:+.4g} to {ranked.high:+.4g}"
    return f"{pairs}; the typical difference is {ranked.difference:+.4g}{unit} ({span})"


def boots_needed(shift: Shift, *, margin: float, level_used: float = 0.05) -> int | None:
    """Return about how many boots would decide either way, None if no affordable number would."""
    if shift.ratio is None or shift.low is None or shift.high is None:
        return None
    centre = abs(log(shift.ratio))
    wanted = max(centre, log1p(margin) - centre)
    half = (log(shift.high) - log(shift.low)) / 2
    if wanted <= 0:
        return None
    return _boots_to_narrow(shift, half / wanted, level_used)


def _boots_to_narrow(shift: Shift, times: float, level_used: float) -> int | None:
    """Return how many boots make the interval that many times narrower.

    It narrows with the square root of the boots, and with Student's quantile as degrees of freedom grow.
    """
    if times > MOST_BOOTS:
        return None
    boots = max(ceil(shift.boots * times**2), shift.boots + 1)
    if shift.freedom is None or shift.boots < LEAST_BLOCKS:
        return boots if boots <= MOST_BOOTS else None
    now = scipy.stats.t.ppf(1 - level_used / 2, shift.freedom)
    for _ in range(20):
        freedom = shift.freedom * (boots - 1) / (shift.boots - 1)
        quantile = float(scipy.stats.t.ppf(1 - level_used / 2, freedom) / now)
        again = max(ceil(shift.boots * (times * quantile) ** 2), shift.boots + 1)
        if again == boots or again > MOST_BOOTS:
            break
        boots = ceil(sqrt(again * boots))
    return max(again, shift.boots + 1) if again <= MOST_BOOTS else None


def _boots_for_adjustment(shift: Shift, q_value: float) -> int | None:
    """Return the boots at which this p-value, if the ratio stays, would pass the adjustment."""
    if not shift.p_value:
        return None
    return _boots_for_p(shift, shift.p_value, shift.p_value * FALSE_DISCOVERIES / q_value)


def _boots_for_p(shift: Shift, p_value: float, wanted: float) -> int | None:
    """Return the boots at which this p-value would have become as small as wanted; None if no affordable number would."""
    if not 0 < p_value < 1 or not wanted > 0 or not shift.freedom:
        return None
    needed = scipy.stats.t.isf(wanted / 2, shift.freedom)
    return _boots_to_narrow(shift, float(needed / scipy.stats.t.isf(p_value / 2, shift.freedom)), 0.05)


def _boots_for_an_interval(shift: Shift, level_used: float) -> int | None:
    """Return the boots that would give an interval; None where boots are not what is missing."""
    if shift.p_value:  # boots agree exactly; each block divides the p-value by the same number
        return max(ceil(shift.boots * log(level_used) / log(shift.p_value)), shift.boots + 1)
    missing = shift.ratio is not None or shift.boots == 0
    return LEAST_BLOCKS if missing and shift.boots < LEAST_BLOCKS else None


def _unclear(needed: int | None, margin: float) -> str:
    said = "could be faster or slower"
    if margin <= 0:
        said += "; with a margin of 0 the verdict is never unchanged"
    return with_boots(said, needed)


def with_boots(said: str, needed: int | None) -> str:
    """Return the reason followed by the boots needed, or that more would not settle it."""
    return f"{said}; about {needed} boots needed" if needed else f"{said}; more boots would not settle it"
