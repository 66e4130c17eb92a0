# SPDX-License-Identifier: GPL-2.0-or-later
import numpy as np
import pytest
from scipy import stats

from lab.statistics.iterations import quantile_interval, trend_left


def boots(count: int, iterations: int, seed: int, between: float = 0.1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.exp(between * rng.normal(size=(count, 1)) + 0.3 * rng.normal(size=(count, iterations)))


def test_warm_up_that_is_over_is_rarely_doubted() -> None:
    doubts = sum(
        trend.p_value <= 0.05 for seed in range(600) if (trend := trend_left(boots(5, 8, seed).tolist()))
    )
    assert 0.03 <= doubts / 600 <= 0.075


def test_iterations_that_resemble_their_neighbours_are_no_trend() -> None:
    rng = np.random.default_rng(1)
    walks = np.cumsum(rng.normal(size=(400, 6, 10)), axis=2) + 100
    doubts = sum(trend.p_value <= 0.05 for walk in walks if (trend := trend_left(walk.tolist())))
    assert doubts / 400 <= 0.08


def test_it_tells_how_many_more_warm_ups_would_do() -> None:
    values = 100 + np.random.default_rng(1).normal(size=(6, 10))
    values[:, 0] += 10
    values[:, 1] += 5
    trend = trend_left(values.tolist())
    assert trend is not None
    assert trend.slope < 0
    assert trend.more_warmups == 2


def test_boots_that_drift_to_their_end_need_something_else_than_warm_up() -> None:
    values = [[100.0 + iteration + boot for iteration in range(8)] for boot in range(4)]
    trend = trend_left(values)
    assert trend is not None
    assert trend.more_warmups is None
    assert trend.total == pytest.approx(7 / 105, rel=0.02)


def test_identical_iterations_have_no_trend() -> None:
    trend = trend_left([[5.0] * 4] * 3)
    assert trend is not None
    assert (trend.slope, trend.p_value, trend.more_warmups) == (0.0, 1.0, 0)


@pytest.mark.parametrize(
    "values", [[], [[1.0] * 9] * 2, [[1.0, 2.0]] * 9, [[0.0] * 4] * 4, [[float("nan")] * 4] * 4]
)
def test_too_little_to_tell_is_none(values: list[list[float]]) -> None:
    assert trend_left(values) is None


def test_a_tail_quantile_is_covered_by_its_interval() -> None:
    truth = np.exp(np.hypot(0.1, 0.3) * stats.norm.ppf(0.99))
    found = [quantile_interval(boots(8, 200, seed).tolist(), 0.99) for seed in range(200)]
    assert np.mean([(q.low or 0) <= truth <= (q.high or 0) for q in found]) >= 0.91
    assert all((q.low or 0) <= (q.value or 0) <= (q.high or 0) for q in found)


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ([], "no valid boot"),
        ([[1.0] * 50] * 5, "250 values do not reach the 0.999 quantile"),
        ([[1.0] * 1000] * 2, "an interval takes 3 boots, 2 count"),
        ([[1.0, float("inf")]] * 3, "a value is not finite"),
    ],
)
def test_a_quantile_that_cannot_be_told_says_why(values: list[list[float]], why: str) -> None:
    assert quantile_interval(values, 0.999).why == why


def test_a_constant_has_its_quantile_exactly() -> None:
    assert quantile_interval([[3.0] * 9] * 4, 0.5).high == 3.0
