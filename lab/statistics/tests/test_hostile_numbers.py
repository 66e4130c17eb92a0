# SPDX-License-Identifier: GPL-2.0-or-later
"""Numbers that no kernel should report, but a guest may: each gets a result or a refusal in words, never a warning."""

from __future__ import annotations

import warnings
from math import inf, isfinite, nan

import numpy as np
import pytest

from lab.statistics.arms import Arm, Shift
from lab.statistics.estimate import estimate
from lab.statistics.spread import compare_spread
from lab.statistics.trend_steps import find_steps
from lab.statistics.verdict import judge

pytestmark = pytest.mark.hostile

HUGE, TINY = 1e300, 5e-324
BLOCKS = (1, 2, 3, 5, 9)


def arm(name: str, values: list[float]) -> Arm:
    return Arm(name, {block: (value,) for block, value in enumerate(values)})


def judged(base: list[Arm], candidate: Arm) -> tuple[Shift, str, str]:
    """The shift, the verdict and its reason, with every warning an error, at one look and at several."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimate(base, candidate, level=0.995, looks=True)
        compare_spread(base, candidate)
        shift = estimate(base, candidate)
        verdict = judge(shift, better="lower", margin=0.02, q_value=shift.p_value)
    for number in (shift.ratio, shift.low, shift.high):
        assert number is None or (isfinite(number) and number > 0)
    assert shift.p_value is None or 0 <= shift.p_value <= 1
    return shift, verdict.word, verdict.reason


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize(
    ("base", "candidate", "said"),
    [
        (nan, 1.0, "gave no finite number"),
        (1.0, nan, "gave no finite number"),
        (inf, 1.0, "gave no finite number"),
        (1.0, -inf, "gave no finite number"),
        (-1.0, 1.0, "are below 0: there is no ratio"),
        (1.0, -HUGE, "are below 0: there is no ratio"),
    ],
)
def test_what_is_no_number_of_a_metric_is_refused_in_words(
    base: float, candidate: float, said: str, blocks: int
) -> None:
    sides = [arm("base", [base] * blocks), arm("twin", [base] * blocks)]
    shift, word, reason = judged(sides, arm("new", [candidate] * blocks))
    assert (shift.ratio, shift.p_value, word) == (None, None, "inconclusive")
    assert reason.endswith(said)


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize(
    ("base", "candidate"),
    [
        (HUGE, TINY),
        (TINY, HUGE),
        (HUGE, HUGE),
        (TINY, TINY),
        (0.0, HUGE),
        (HUGE, 0.0),
        (0.0, TINY),
        (0.0, 0.0),
    ],
)
def test_numbers_at_the_ends_of_what_floats_hold_have_a_verdict(
    base: float, candidate: float, blocks: int
) -> None:
    """Alike within a side, and with every second boot on the other one's number."""
    for mixed in (False, True):
        ours = [candidate if not mixed or block % 2 else base for block in range(blocks)]
        shift, word, reason = judged(
            [arm("base", [base] * blocks), arm("twin", [base] * blocks)], arm("new", ours)
        )
        assert word in {"regression", "improvement", "unchanged", "inconclusive"}
        assert shift.ratio is not None or reason


def test_a_million_iterations_of_one_boot_count_as_one_number() -> None:
    values = tuple(np.random.default_rng(1).random(1_000_000).tolist())
    shift, word, _ = judged([Arm("base", {0: values})], Arm("new", {0: values}))
    assert (shift.boots, word) == (1, "inconclusive")


def test_blocks_that_never_meet_are_refused_in_words() -> None:
    _, _, reason = judged([Arm("base", {0: (1.0,)})], Arm("new", {7: (1.0,)}))
    assert reason == "no boot of both sides in one block"


def test_iterations_from_end_to_end_of_what_floats_hold_have_a_middle() -> None:
    wild = Arm("new", dict.fromkeys(range(5), (-1.7e308, 1.7e308, 1.0)))
    even = Arm("even", dict.fromkeys(range(5), (-1.7e308, 1.7e308)))
    for odd in (wild, even):
        judged([arm("base", [1.0] * 5), arm("twin", [1.0] * 5)], odd)


@pytest.mark.parametrize(
    "values", [[HUGE, TINY] * 10, [-HUGE, HUGE] * 10, [TINY] * 12 + [HUGE] * 12, [0.0] * 11 + [-1.0]]
)
def test_trends_of_such_numbers_have_steps_or_none(values: list[float]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for step in find_steps([[value] for value in values]):
            assert 0 < step.at < len(values)
