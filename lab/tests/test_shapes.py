# SPDX-License-Identifier: GPL-2.0-or-later
"""Error rates on shapes of noise that the methods do not assume; docs/verdicts.md has finer figures.

Seeds are fixed, so each share is the same in every run. 2,000 trials of a true rate of 5 % have a standard error of
0.5 points: the bounds are three of them around the goal of 3 to 6 %.
"""

import numpy as np
import pytest

from bench.stats_null import GOAL, alarms, by_name, stopped

TRIALS = 2000
LEAST, MOST = 0.015, 0.075

OUTSIDE_BEFORE = (
    "candidate's variance ×4",
    "candidate's variance ×16",
    "candidate's variance ×1/16",
    "every third boot slow",
    "30 % zeros",
    "5 % zeros",
    "integers 0, 1, 2, …",
)


@pytest.mark.parametrize("name", OUTSIDE_BEFORE)
@pytest.mark.parametrize("boots", [5, 10, pytest.param(20, marks=pytest.mark.thorough)])
def test_equal_kernels_of_any_shape_are_told_apart_in_one_of_twenty_experiments(
    name: str, boots: int
) -> None:
    assert LEAST <= alarms(by_name(name), TRIALS, boots, seed=7) <= MOST


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("candidate's variance ×4", marks=pytest.mark.thorough),
        "candidate's variance ×16",
        pytest.param("30 % zeros", marks=pytest.mark.thorough),
    ],
)
def test_looks_at_unfinished_data_keep_the_level_whatever_the_candidates_noise(name: str) -> None:
    called, _ = stopped(by_name(name), TRIALS, seed=7)
    assert LEAST <= np.mean(called) <= 0.065


@pytest.mark.parametrize(("boots", "least"), [(5, 0.2), (10, 0.3), (20, 0.6)])
def test_three_times_the_size_is_found_although_some_boots_are_zero(boots: int, least: float) -> None:
    assert alarms(by_name("30 % zeros"), TRIALS, boots, seed=7, times=3.0) >= least


@pytest.mark.parametrize(("boots", "least"), [(5, 0.5), (6, 0.62), (10, 0.9), (20, 0.99)])
def test_a_shift_of_one_and_a_half_deviations_is_found_as_often_as_docs_say(boots: int, least: float) -> None:
    assert alarms(by_name("normal"), TRIALS, boots, seed=7, times=1.03) >= least


def test_large_shifts_still_end_an_experiment_early() -> None:
    called, boots = stopped(by_name("normal"), TRIALS, seed=7, times=1.10)
    assert np.mean(called) == 1
    assert np.mean(boots) < 6.5


# The bench's own trials, so that the bound is the goal itself: each was above 6 % with these seeds before.
@pytest.mark.parametrize(
    ("name", "boots"),
    [
        ("candidate's variance ×9", 5),
        ("candidate's variance ×16", 5),
        ("candidate's variance ×64", 5),
        ("every third boot slow", 10),
        ("noise grows with time", 10),
    ],
)
def test_a_noisier_candidate_and_skewed_noise_stay_within_the_goal(name: str, boots: int) -> None:
    assert GOAL[0] <= alarms(by_name(name), 10_000, boots, seed=1) <= GOAL[1]


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["candidate bimodal 1:1", "candidate in three clusters"])
def test_early_looks_do_not_take_a_few_boots_of_one_cluster_for_a_shift(name: str) -> None:
    called, _ = stopped(by_name(name), 10_000, seed=1)
    assert GOAL[0] <= np.mean(called) <= GOAL[1]
