# SPDX-License-Identifier: GPL-2.0-or-later
from math import log

import numpy as np
import pytest

from lab.statistics.arms import Shift
from lab.statistics.estimate import Arm, estimate
from lab.statistics.family_interval import adjust
from lab.statistics.verdict import Better, Verdict, boots_needed, judge


def shift(
    low: float,
    ratio: float,
    high: float,
    boots: int = 10,
    p_value: float | None = None,
    freedom: float | None = None,
) -> Shift:
    return Shift(boots, 100.0, 100.0 * ratio, ratio, low, high, p_value=p_value, freedom=freedom)


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


def test_a_shift_within_the_floor_is_not_called_and_boots_do_not_help() -> None:
    verdict = judge(shift(1.001, 1.002, 1.003), better="lower", margin=0.0005, floor=0.0025)
    assert verdict == Verdict(
        "inconclusive", None, "smaller than the effect of code layout alone here (±0.25%)"
    )
    assert judge(shift(1.003, 1.004, 1.005), better="lower", margin=0.0005, floor=0.0025).word == "regression"


def test_a_change_must_survive_the_number_of_metrics() -> None:
    clear = shift(1.01, 1.04, 1.07, p_value=0.01, freedom=18)
    assert judge(clear, better="lower", margin=0.005, q_value=0.04).word == "regression"
    verdict = judge(clear, better="lower", margin=0.005, q_value=0.2)
    assert verdict.word == "inconclusive"
    assert verdict.reason == "not significant among this many metrics (q = 0.2); about 15 boots needed"


def test_inconclusive_tells_how_many_boots_it_would_take() -> None:
    verdict = judge(shift(0.90, 1.0, 1 / 0.90), better="lower", margin=0.02)
    # log(1/0.9)/log(1.02) = 5.32: 10 boots times its square.
    assert verdict.boots_needed == 284
    assert "about 284 boots needed" in verdict.reason


def test_few_boots_need_fewer_more_since_degrees_of_freedom_grow() -> None:
    few = shift(0.98, 1.02, 1.06, boots=3, freedom=5)
    by_root = judge(shift(0.98, 1.02, 1.06, boots=3), better="lower", margin=0.01).boots_needed
    needed = boots_needed(few, margin=0.01)
    assert needed is not None
    assert by_root is not None
    assert 3 < needed < by_root


def test_the_number_of_boots_it_would_take_is_about_right() -> None:
    rng = np.random.default_rng(3)

    def drawn(blocks: int) -> Shift:
        logs = 0.02 * rng.normal(size=(3, blocks))
        base, twin, new = (
            Arm(str(i), {b: (float(np.exp(v)),) for b, v in enumerate(row)}) for i, row in enumerate(logs)
        )
        return estimate([base, twin], new)

    guesses = [boots_needed(drawn(4), margin=0.02) or 0 for _ in range(100)]
    halves = [
        (log(s.high or 1) - log(s.low or 1)) / 2 for s in (drawn(int(np.median(guesses))) for _ in range(60))
    ]
    assert 0.6 < np.median(halves) / log(1.02) < 1.4


def test_a_large_unclear_shift_takes_few_more_boots() -> None:
    assert judge(shift(0.99, 1.20, 1.45), better="lower", margin=0.02).boots_needed == 12 - 1


def test_a_margin_of_zero_is_never_met_and_the_reason_says_so() -> None:
    exact = judge(shift(1.0, 1.0, 1.0), better="lower", margin=0.0)
    assert exact.word == "inconclusive"
    assert "with a margin of 0 the verdict is never unchanged" in exact.reason
    still = shift(0.9, 1.0, 1.1)
    assert boots_needed(still, margin=0.0) is None
    assert "more boots would not settle it" in judge(still, better="lower", margin=0.0).reason


def test_without_an_interval_it_says_what_is_missing() -> None:
    undecided = Shift(1, 1.0, 9.0, 9.0, None, None, why="an interval needs 2 blocks")
    assert judge(undecided, better="lower", margin=0.02) == Verdict(
        "inconclusive", 2, "an interval needs 2 blocks"
    )
    none = Shift(6, 0.0, 1.0, None, None, None, why="there is no ratio")
    assert judge(none, better="lower", margin=0.02) == Verdict("inconclusive", None, "there is no ratio")


def test_boots_that_agree_exactly_say_when_luck_is_ruled_out() -> None:
    base, new = (Arm(n, dict.fromkeys(range(3), (v,))) for n, v in (("base", 5.0), ("new", 6.0)))
    verdict = judge(estimate([base], new), better="lower", margin=0.02)
    assert (verdict.word, verdict.boots_needed) == ("inconclusive", 4)


def test_adjusted_p_values_keep_their_order_and_their_gaps() -> None:
    assert adjust([0.01, None, 0.04, 0.03, float("nan")]) == [
        pytest.approx(0.03),
        None,
        pytest.approx(0.04),
        pytest.approx(0.04),
        None,
    ]
    assert adjust([]) == []
    assert adjust([None]) == [None]


def test_of_many_equal_metrics_hardly_any_is_called() -> None:
    rng = np.random.default_rng(2)
    called = [any(q is not None and q <= 0.05 for q in adjust(rng.random(40).tolist())) for _ in range(400)]
    assert np.mean(called) <= 0.08
