# SPDX-License-Identifier: GPL-2.0-or-later
"""The decision core of a bisection, tried on every small range with every set of inconclusive revisions."""

from collections.abc import Callable
from itertools import product

import pytest

from lab.bisections.strategy import Compare, NoStep, RevisionAnswer, StepFound, decide

G, B, U = RevisionAnswer.GOOD, RevisionAnswer.BAD, RevisionAnswer.UNTOLD


def bisected(
    last: int, answer: Callable[[int], RevisionAnswer]
) -> tuple[StepFound | NoStep, dict[int, RevisionAnswer]]:
    answers: dict[int, RevisionAnswer] = {}
    while isinstance(decision := decide(last, answers), Compare):
        assert decision.revision not in answers
        answers[decision.revision] = answer(decision.revision)
    return decision, answers


@pytest.mark.parametrize("last", range(1, 34))
def test_every_culprit_is_found_in_as_few_comparisons_as_possible(last: int) -> None:
    for culprit in range(1, last + 1):
        step, answers = bisected(last, lambda n, culprit=culprit: B if n >= culprit else G)  # type: ignore[misc]
        assert step == StepFound(culprit - 1, culprit)
        assert len(answers) <= 1 + (last - 1).bit_length()


@pytest.mark.parametrize("last", range(1, 9))
def test_with_every_set_of_untold_revisions_the_suspects_hold_the_culprit_and_no_told_one(last: int) -> None:
    for culprit, skips in product(range(1, last + 1), product((False, True), repeat=last - 1)):
        untold = {number for number, skip in enumerate(skips, 1) if skip}
        truth = {n: U if n in untold else B if n >= culprit else G for n in range(1, last + 1)}
        step, _ = bisected(last, truth.__getitem__)
        assert isinstance(step, StepFound)
        assert culprit in step.suspects
        # As narrow as the data allow: everything between its ends could not be told.
        assert set(step.suspects[:-1]) <= untold
        assert truth[step.bad] is B
        assert step.good == 0 or truth[step.good] is G


@pytest.mark.parametrize(("answer", "told"), [(G, True), (U, False)])
def test_a_last_revision_that_is_not_bad_ends_it_at_once(answer: RevisionAnswer, told: bool) -> None:
    assert bisected(100, lambda _: answer) == (NoStep(told), {100: answer})


def test_a_broken_stretch_is_left_in_strides() -> None:
    broken = range(30, 70)
    _, answers = bisected(100, lambda n: U if n in broken else B if n >= 80 else G)
    assert sum(answer is U for answer in answers.values()) <= 2


@pytest.mark.parametrize(("last", "answers"), [(0, {}), (3, {0: G}), (3, {4: B})])
def test_answers_about_no_revision_of_the_line_are_refused(
    last: int, answers: dict[int, RevisionAnswer]
) -> None:
    with pytest.raises(ValueError, match="bisection"):
        decide(last, answers)
