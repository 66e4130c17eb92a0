# SPDX-License-Identifier: GPL-2.0-or-later
import pytest

from lab.analysis.bootstrap import Shift
from lab.analysis.verdict import Better, boots_needed, judge


def shift(low: float, ratio: float, high: float, boots: int = 10) -> Shift:
    return Shift(boots, 100.0, 100.0 * ratio, ratio, low, high)


@pytest.mark.parametrize(
    ("measured", "better", "word"),
    [
        (shift(1.05, 1.10, 1.20), "lower", "regression"),
        (shift(1.05, 1.10, 1.20), "higher", "improvement"),
        (shift(0.40, 0.47, 0.50), "lower", "improvement"),
        (shift(0.40, 0.47, 0.50), "higher", "regression"),
        (shift(0.99, 1.00, 1.01), "lower", "unchanged"),
        # Real but too small to matter.
        (shift(1.005, 1.01, 1.015), "lower", "unchanged"),
        # Excludes no change, and reaches beyond the margin.
        (shift(1.005, 1.02, 1.04), "lower", "regression"),
        (shift(0.90, 1.01, 1.10), "lower", "inconclusive"),
    ],
)
def test_the_rule(measured: Shift, better: Better, word: str) -> None:
    assert judge(measured, better=better, margin=0.02).word == word


def test_inconclusive_tells_how_many_boots_it_would_take() -> None:
    verdict = judge(shift(0.90, 1.0, 1 / 0.90), better="lower", margin=0.02)
    # log(1/0.9)/log(1.02) = 5.32: 10 boots times its square.
    assert verdict.boots_needed == 284
    assert "about 284 boots would tell" in verdict.reason


def test_a_large_unclear_shift_takes_few_more_boots() -> None:
    assert judge(shift(0.99, 1.20, 1.45), better="lower", margin=0.02).boots_needed == 12 - 1


def test_boots_do_not_help_when_nothing_could_be_told() -> None:
    still = shift(0.9, 1.0, 1.1)
    assert boots_needed(still, margin=0.0) is None
    assert "more boots would not tell" in judge(still, better="lower", margin=0.0).reason


def test_too_few_boots_are_inconclusive_whatever_they_show() -> None:
    verdict = judge(Shift(3, 1.0, 9.0, 9.0, None, None), better="lower", margin=0.02)
    assert (verdict.word, verdict.boots_needed) == ("inconclusive", 5)
    assert verdict.reason == "a verdict takes 5 boots, 3 count"


def test_a_metric_without_a_ratio_is_inconclusive_and_says_why() -> None:
    verdict = judge(Shift(6, 0.0, 1.0, None, None, None, "there is no ratio"), better="lower", margin=0.02)
    assert (verdict.word, verdict.boots_needed, verdict.reason) == ("inconclusive", None, "there is no ratio")
