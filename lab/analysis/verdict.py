# SPDX-License-Identifier: GPL-2.0-or-later
"""The verdict on one metric.

The rule, in words. The shift of a metric is the ratio candidate over base with a 95 % interval,
and the metric has a margin: a relative change too small to matter, such as 2 %.

1. Is the whole interval within the margin (from 1/(1+margin) to 1+margin)? Then **unchanged**,
   even if it excludes "no change": a difference that is real and does not matter.
2. Otherwise, does the interval exclude "no change" (a ratio of 1)? Then **regression** or
   **improvement**, by the direction in which the metric is better.
3. Otherwise **inconclusive**, with the number of boots it would take: the interval narrows with
   the square root of their number, and must become narrow enough either to exclude 1 or to lie
   within the margin, whichever comes first if the ratio stays where it is. It is an estimate.
4. Fewer than five paired boots, or no ratio at all, are inconclusive whatever they show.

No verdict is a promise: with no change at all, one metric in sixteen gets regression or improvement at
five boots, at most one in twenty from six boots on, less where the margin is wider than the noise.
"""

from dataclasses import dataclass
from math import ceil, log, log1p
from typing import Literal

from lab.analysis.bootstrap import LEAST_BOOTS, Shift, half_width

Better = Literal["lower", "higher"]
Word = Literal["regression", "improvement", "unchanged", "inconclusive"]
# Nobody boots more often: an estimate beyond this says only that boots are not the way.
MOST_BOOTS = 100_000


@dataclass(frozen=True, slots=True)
class Verdict:
    """One of four words; boots_needed and reason for those that are inconclusive."""

    word: Word
    boots_needed: int | None = None
    reason: str = ""


def judge(shift: Shift, *, better: Better, margin: float) -> Verdict:
    """Apply the rule of this module. margin: fraction >= 0, such as 0.02."""
    if shift.ratio is None:
        return Verdict("inconclusive", LEAST_BOOTS if shift.boots == 0 else None, shift.why)
    if shift.low is None or shift.high is None:
        return Verdict(
            "inconclusive", LEAST_BOOTS, f"a verdict takes {LEAST_BOOTS} boots, {shift.boots} count"
        )
    edge = log1p(margin)
    low, high = log(shift.low), log(shift.high)
    if -edge <= low and high <= edge:
        return Verdict("unchanged")
    if low > 0 or high < 0:
        worse = (low > 0) == (better == "lower")
        return Verdict("regression" if worse else "improvement")
    needed = boots_needed(shift, margin=margin)
    said = f"about {needed} boots would tell" if needed else "more boots would not tell"
    return Verdict("inconclusive", needed, f"the interval holds both better and worse; {said}")


def boots_needed(shift: Shift, *, margin: float) -> int | None:
    """Return about how many boots decide either way, None if none of a payable number do."""
    if shift.ratio is None:
        return None
    centre = abs(log(shift.ratio))
    wanted = max(centre, log1p(margin) - centre)
    if wanted <= 0:
        return None
    boots = ceil(shift.boots * (half_width(shift) / wanted) ** 2)
    return max(boots, shift.boots + 1) if boots <= MOST_BOOTS else None
