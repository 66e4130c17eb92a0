# SPDX-License-Identifier: GPL-2.0-or-later
from math import exp

import numpy as np
import pytest
from numpy.typing import NDArray

from lab.analysis import bootstrap
from lab.analysis.bootstrap import boot_median, compare_boots, expanded_tail, half_width, median_interval
from lab.analysis.verdict import judge

TRIALS = 400


def noise(kind: str, shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.float64]:
    if kind == "normal":
        return rng.normal(size=shape)
    if kind == "heavy tails":
        return rng.standard_t(3, size=shape)
    if kind == "skewed":
        return np.exp(rng.normal(size=shape))
    return rng.normal(size=shape) * 0.3 + 5 * (rng.random(shape) < 0.2)


def alarms(kind: str, boots: int, shift: float = 1.0) -> float:
    """The share of simulated comparisons whose verdict claims a change; noise is 5 %."""
    rng = np.random.default_rng(20)
    base = 100 * np.exp(0.05 * noise(kind, (TRIALS, boots), rng))
    candidate = 100 * shift * np.exp(0.05 * noise(kind, (TRIALS, boots), rng))
    words = [
        judge(compare_boots(b, c), better="lower", margin=0.001).word
        for b, c in zip(base, candidate, strict=True)
    ]
    return sum(word in {"regression", "improvement"} for word in words) / TRIALS


@pytest.fixture(autouse=True)
def _fewer_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "RESAMPLES", 1999)


# 400 trials of a true rate of 6.25 % (5 boots, the floor of any distribution-free rule) have a
# standard error of 1.2 points, of 5 % 1.1: the bounds lie two of them above.
@pytest.mark.parametrize("kind", ["normal", "heavy tails", "skewed", "bimodal"])
@pytest.mark.parametrize(("boots", "bound"), [(5, 0.087), (7, 0.072), (10, 0.072)])
def test_equal_kernels_rarely_get_a_verdict_of_change(kind: str, boots: int, bound: float) -> None:
    assert alarms(kind, boots) <= bound


# Noise of 5 % a boot; the bimodal one is off by a quarter in every fifth boot besides.
@pytest.mark.parametrize(("kind", "shift"), [("normal", 1.2), ("heavy tails", 1.2), ("bimodal", 1.4)])
def test_ten_boots_find_a_large_shift(kind: str, shift: float) -> None:
    assert alarms(kind, 10, shift=shift) >= 0.85


def test_five_boots_give_the_range_of_their_ratios() -> None:
    ratios = [1.01, 0.97, 1.05, 1.02, 0.99]
    shift = compare_boots([100.0] * 5, [100 * r for r in ratios])
    assert shift.ratio == pytest.approx(1.01)
    assert [shift.low, shift.high] == pytest.approx([0.97, 1.05])


def test_one_wild_boot_does_not_move_the_ratio() -> None:
    calm = compare_boots([10.0] * 9, [9.0, 9.1, 8.9, 9.0, 9.2, 8.8, 9.0, 9.1, 9.0])
    wild = compare_boots([10.0] * 9, [9.0, 9.1, 8.9, 9.0, 9.2, 8.8, 9.0, 9.1, 900.0])
    assert wild.ratio == pytest.approx(calm.ratio or 0)


def test_drift_between_blocks_cancels_within_pairs() -> None:
    drift = [100.0, 150.0, 220.0, 300.0, 500.0, 800.0]
    shift = compare_boots(drift, [1.1 * value for value in drift])
    assert shift.ratio == pytest.approx(1.1)
    assert half_width(shift) < 1e-9


def test_identical_values_have_an_interval_of_no_width() -> None:
    shift = compare_boots([7.0] * 6, [7.0] * 6)
    assert (shift.ratio, shift.low, shift.high) == (1.0, 1.0, 1.0)


def test_two_zeros_are_equal_and_one_zero_has_no_ratio() -> None:
    assert compare_boots([0.0] * 5, [0.0] * 5).ratio == 1.0
    torn = compare_boots([0.0, 1.0, 1.0, 1.0, 1.0], [1.0] * 5)
    assert torn.ratio is None
    assert torn.why == "0 on one side only in 1 of 5 pairs: there is no ratio"
    assert torn.median == 1.0


def test_fewer_than_five_pairs_have_a_ratio_but_no_interval() -> None:
    shift = compare_boots([1.0, 1.0], [2.0, 2.0])
    assert (shift.ratio, shift.low, shift.high) == (2.0, None, None)
    with pytest.raises(ValueError, match="no interval"):
        half_width(shift)
    assert compare_boots([], []).ratio is None


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -1.0])
def test_values_that_are_no_measurements_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        compare_boots([1.0], [bad])


def test_unpaired_boots_are_refused() -> None:
    with pytest.raises(ValueError, match="2 and 1"):
        compare_boots([1.0, 2.0], [1.0])


def test_the_same_data_and_seed_give_the_same_interval() -> None:
    values = np.random.default_rng(3).normal(size=12)
    assert median_interval(values, seed=4) == median_interval(values, seed=4)
    low, high = median_interval(values, seed=4)
    assert low < float(np.median(values)) < high


def test_tails_are_expanded_more_for_fewer_boots() -> None:
    assert expanded_tail(5) < expanded_tail(10) < expanded_tail(100) < 0.025


def test_a_boot_counts_as_the_median_of_its_iterations() -> None:
    assert boot_median([3.0, 100.0, 4.0]) == 4.0
    assert exp(0) == boot_median([1.0])
