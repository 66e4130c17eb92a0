# SPDX-License-Identifier: GPL-2.0-or-later
import numpy as np
import pytest

from lab.statistics.iterations import trend_left


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
