# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy import special

from lab.statistics.quantiles import histogram_quantile, middle


@pytest.mark.parametrize(("boots", "low", "high"), [(1, 0, 0), (5, 0, 4), (6, 0, 5), (9, 1, 7), (20, 5, 14)])
def test_the_interval_of_a_median_is_between_boots(boots: int, low: int, high: int) -> None:
    interval = middle(range(boots))
    assert (interval.low, interval.high) == (low, high)
    assert (interval.level >= 0.95) == (boots >= 6)


def test_the_interval_of_a_median_covers_it_whatever_the_distribution() -> None:
    random = np.random.default_rng(1)
    held = 0
    for _ in range(2000):
        interval = middle(list(random.exponential(size=9) ** 3))
        held += interval.low <= np.log(2) ** 3 <= interval.high
    assert held / 2000 >= 0.95


def test_a_tail_quantile_is_covered_by_its_interval() -> None:
    truth = np.exp(np.hypot(0.1, 0.3) * special.ndtri(0.99))
    estimates = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        boots = np.exp(0.1 * rng.normal(size=(8, 1)) + 0.3 * rng.normal(size=(8, 200)))
        estimates.append(
            histogram_quantile([Counter(boot) for boot in boots.tolist()], 0.99, overflow=[0] * 8)
        )
    assert np.mean([(q.low or 0) <= truth <= (q.high or 0) for q in estimates]) >= 0.91
    assert all((q.low or 0) <= (q.value or 0) <= (q.high or 0) for q in estimates)


@pytest.mark.parametrize("quantile", [0.5, 0.99, 0.999])
def test_a_quantile_is_the_value_that_numpy_finds_in_all_of_them(quantile: float) -> None:
    random = np.random.default_rng(7)
    boots = [np.round(random.lognormal(3 + shift, 0.8, 4000)) for shift in (0, 0.05, -0.03, 0.1)]
    estimate = histogram_quantile([Counter(boot.tolist()) for boot in boots], quantile, overflow=[0] * 4)
    assert estimate.value == np.quantile(np.concatenate(boots), quantile, method="inverted_cdf")


def test_a_constant_has_its_quantile_exactly() -> None:
    assert histogram_quantile([{3.0: 9}] * 4, 0.5, overflow=[0] * 4).high == 3.0


def test_a_quantile_beyond_the_histogram_is_told() -> None:
    estimate = histogram_quantile([{10.0: 900}] * 3, 0.99, overflow=[100] * 3)
    assert estimate.value is None
    assert "beyond the histogram, which ends at 10" in estimate.why


def test_too_few_values_or_boots_are_told() -> None:
    assert "do not reach" in histogram_quantile([{1.0: 20}] * 3, 0.999, overflow=[0] * 3).why
    assert "needs 3 boots, 1 count" in histogram_quantile([{1.0: 2000}, {}], 0.9, overflow=[0, 0]).why
    assert histogram_quantile([], 0.9, overflow=[]).why == "no valid boot"
