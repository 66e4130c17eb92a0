# SPDX-License-Identifier: GPL-2.0-or-later
"""Choose the next revision to compare, and conclude from the answers. Pure.

Revisions are numbered from 0, the good one, to `last`, the bad one. Each answer compares one of them with 0: bad (it
shows the step), good (it does not), or untold (it does not build or boot, or its boots are inconclusive). The last one is
compared first: if it does not show the step, there is nothing to search for. Every later comparison takes a revision between the
latest good and the earliest bad revision. Without untold revisions it is the middle. Otherwise it lies in the longest stretch that
was not compared yet, far from the untold revisions, since these come in stretches too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise


class RevisionAnswer(Enum):
    """The answer of one comparison with the good revision."""

    GOOD = "good"
    BAD = "bad"
    UNTOLD = "untold"


@dataclass(frozen=True, slots=True)
class Compare:
    """Compare this revision next."""

    revision: int


@dataclass(frozen=True, slots=True)
class StepFound:
    """The step begins with a revision after `good`, up to and including `bad`; those between gave no clear answer."""

    good: int
    bad: int

    @property
    def suspects(self) -> tuple[int, ...]:
        """The revisions that may have caused the step; a single one if it is known."""
        return tuple(range(self.good + 1, self.bad + 1))


@dataclass(frozen=True, slots=True)
class NoStep:
    """The last revision does not show the step, or (`is_compared` is false) could not be compared."""

    is_compared: bool


Decision = Compare | StepFound | NoStep


def decide(last: int, answers: Mapping[int, RevisionAnswer]) -> Decision:
    """Return what to do next. answers: by number, 1 to last, which is at least 1. Raises ValueError."""
    if last < 1 or not all(1 <= number <= last for number in answers):
        raise ValueError(f"a bisection of {last} revisions has no answers about {sorted(answers)}")
    if last not in answers:
        return Compare(last)
    if answers[last] is not RevisionAnswer.BAD:
        return NoStep(is_compared=answers[last] is RevisionAnswer.GOOD)
    bad = min(number for number, answer in answers.items() if answer is RevisionAnswer.BAD)
    good = max([0, *(n for n, answer in answers.items() if answer is RevisionAnswer.GOOD and n < bad)])
    answered = [good, *sorted(number for number in answers if good < number < bad), bad]
    gap = max(pairwise(answered), key=lambda ends: ends[1] - ends[0])
    return Compare(sum(gap) // 2) if gap[1] - gap[0] > 1 else StepFound(good, bad)
