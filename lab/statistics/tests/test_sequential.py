# SPDX-License-Identifier: GPL-2.0-or-later
from math import log1p

import numpy as np
import pytest
from scipy import special

from lab.statistics.rank_test import p_values
from lab.statistics.sequential import (
    ALPHA,
    LOOKS,
    detectable,
    level_at,
    next_blocks,
    nominal_levels,
    spent,
)
from lab.tests.noise import experiments, layout

TRIALS = 2000


def stopped(kind: str, arms: int, shift: float) -> tuple[float, float]:
    """Share of experiments that called a change, and the mean number of blocks they took."""
    logs = experiments(kind, TRIALS, LOOKS[-1], arms, seed=arms)
    logs[:, :, 0] += shift
    blocks = np.zeros(TRIALS)
    for look in LOOKS:
        p = p_values(logs[:, :look].reshape(TRIALS, -1), layout(look, arms))
        blocks[(blocks == 0) & (p <= level_at(look))] = look
    return float(np.mean(blocks > 0)), float(np.mean(np.where(blocks, blocks, LOOKS[-1])))


@pytest.mark.parametrize(
    ("kind", "arms"),
    [pytest.param("normal", 3, marks=pytest.mark.thorough), ("bimodal", 6), ("autocorrelated", 3)],
)
def test_looking_six_times_keeps_false_alarms_below_five_percent(kind: str, arms: int) -> None:
    # Two standard errors of 2,000 trials are one point.
    assert stopped(kind, arms, 0.0)[0] <= ALPHA + 0.01


def test_large_shifts_stop_early_and_small_ones_late() -> None:
    large, small = stopped("normal", 3, 4.0), stopped("normal", 3, 1.0)
    assert large[0] > 0.99
    assert large[1] < 5
    assert 8 < small[1] < LOOKS[-1]


def test_nominal_levels_spend_what_the_function_allows() -> None:
    rng = np.random.default_rng(1)
    looks = np.array(LOOKS)
    sums = np.cumsum(rng.normal(size=(40_000, LOOKS[-1])), axis=1)[:, looks - 1]
    p = 2 * special.ndtr(-np.abs(sums) / np.sqrt(looks))
    for upto in (1, 3, len(LOOKS)):
        alarms = np.mean(np.any(p[:, :upto] <= np.array(nominal_levels(LOOKS))[:upto], axis=1))
        assert alarms == pytest.approx(spent(LOOKS[upto - 1] / LOOKS[-1]), abs=0.003)


def test_a_single_look_spends_everything() -> None:
    assert nominal_levels((10,), ALPHA) == pytest.approx((ALPHA,), rel=0.01)


def test_looks_follow_each_other_until_the_last() -> None:
    assert [next_blocks(done) for done in (0, 3, 5, 13, 20, 99)] == [3, 4, 6, 20, None, None]


def test_an_interrupted_experiment_is_judged_at_the_level_of_the_look_before() -> None:
    assert level_at(5) == level_at(4)
    assert level_at(2) == level_at(3)
    assert level_at(99) == level_at(20)
    assert all(0 < level_at(look) < ALPHA for look in LOOKS)


@pytest.mark.parametrize(("blocks", "arms"), [(3, 3), (3, 6), (6, 3), (10, 3)])
def test_what_is_called_detectable_is_found_four_times_in_five(blocks: int, arms: int) -> None:
    shift = log1p(detectable(0.02, blocks, arms) or 0)
    logs = 0.02 * experiments("normal", TRIALS, blocks, arms, seed=9)
    logs[:, :, 0] += shift
    share = np.mean(p_values(logs.reshape(TRIALS, -1), layout(blocks, arms)) <= ALPHA)
    assert 0.74 <= share <= 0.85


def test_what_no_boots_can_find_is_none() -> None:
    assert detectable(0.02, 1, 3) is None
    assert detectable(0.02, 5, 1) is None
    assert detectable(0.0, 5, 3) == 0.0
