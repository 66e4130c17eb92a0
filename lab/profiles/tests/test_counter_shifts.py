# SPDX-License-Identifier: GPL-2.0-or-later
"""Counters that moved and counters that did not."""

import numpy as np
import pytest

from lab.profiles.analysis.counter_shifts import counter_shifts
from lab.statistics.block_model import BlockLayout

COUNTERS = 100
THOROUGH = pytest.mark.thorough


def layout(blocks: int, others: int = 0) -> BlockLayout:
    """The base twice, a candidate, and others: one boot each in every block."""
    arms = 3 + others
    return BlockLayout(np.tile(np.arange(blocks), arms), np.repeat([0, 0, 1, *range(2, 2 + others)], blocks))


def counted(rng: np.random.Generator, shape: str, boots: int) -> np.ndarray:
    """Counters that differ by nothing but chance: float64[counters, boots]."""
    level = np.exp(rng.uniform(-2, 14, (COUNTERS, 1))) * np.ones((COUNTERS, boots))
    if shape == "restless":
        level = level * np.exp(rng.normal(0, 0.1, level.shape))
    if shape == "uneven":
        level = level * np.exp(rng.normal(0, 1, level.shape) * np.exp(rng.normal(-3, 1, (COUNTERS, 1))))
    if shape == "boots":
        level = level * np.exp(rng.normal(0, 0.2, (1, boots)))
    if shape == "bursts":
        level = level * (rng.random(level.shape) < 0.3)
    taken = rng.poisson(level)
    return np.asarray(taken - rng.poisson(level) if shape == "signed" else taken, float)


@pytest.mark.parametrize(
    ("blocks", "others"),
    [pytest.param(3, 0, marks=THOROUGH), (3, 2), pytest.param(5, 1, marks=THOROUGH)],
)
@pytest.mark.parametrize("shape", ["even", "restless", "uneven", "boots", "bursts", "signed"])
def test_of_pages_of_counters_on_which_nothing_moved_few_call_anything(
    shape: str, blocks: int, others: int
) -> None:
    rng = np.random.default_rng(4)
    place = layout(blocks, others)
    called = sum(
        bool((counter_shifts(counted(rng, shape, place.arm.size), place).q <= 0.05).any()) for _ in range(100)
    )
    # 5 % are 5 of 100; 12 or more happen once in 200 times then.
    assert called < 12


def test_two_per_cent_more_instructions_are_found_among_noisy_counters() -> None:
    rng = np.random.default_rng(5)
    place = layout(3)
    values = counted(rng, "uneven", place.arm.size)
    values[0] = 1e8 * np.exp(rng.normal(0, 0.001, place.arm.size))
    values[0, place.arm == 1] *= 1.02
    shifts = counter_shifts(values, place)
    assert shifts.q[0] <= 0.05
    assert shifts.low[0] < 1.02 < shifts.high[0]
    assert shifts.ratio[0] == pytest.approx(1.02, abs=0.003)


def test_what_only_the_candidate_does_is_certain_without_a_ratio_once_boots_are_many() -> None:
    rng = np.random.default_rng(6)
    for blocks, certain in ((3, False), (6, True)):
        place = layout(blocks)
        values = counted(rng, "even", place.arm.size)
        values[0] = np.where(place.arm == 1, rng.poisson(900, place.arm.size), 0)
        shifts = counter_shifts(values, place)
        assert (shifts.q[0] <= 0.05) == certain
        assert np.isnan(shifts.ratio[0])


def test_boots_that_agree_exactly_are_judged_by_the_orders_possible() -> None:
    place = layout(6)
    same, other = np.full(18, 7.0), np.where(place.arm == 1, 8.0, 7.0)
    shifts = counter_shifts(np.stack([same, other]), place)
    assert shifts.p[0] == 1.0
    assert shifts.ratio[1] == pytest.approx(8 / 7)
    assert shifts.p[1] == pytest.approx(1 / 18564)


def test_a_counter_that_some_boots_cannot_tell_is_compared_without_them() -> None:
    rng = np.random.default_rng(7)
    place = layout(4)
    values = counted(rng, "even", 12)[:3]
    values[0], values[1] = 1000 + rng.normal(0, 5, 12), np.nan
    values[0, 0] = np.nan
    shifts = counter_shifts(values, place)
    assert np.isfinite(shifts.p[0])
    assert np.isnan(shifts.p[1])


@pytest.mark.parametrize("arms", [[0, 1], [0, 0], [1, 1], [0, 1, 0, 1]])
def test_so_few_boots_tell_nothing(arms: list[int]) -> None:
    place = BlockLayout(np.arange(len(arms)) // 2, np.array(arms))
    assert np.isnan(counter_shifts(np.ones((1, len(arms))), place).p).all()
