# SPDX-License-Identifier: GPL-2.0-or-later
"""Waits that moved and waits that did not: nanoseconds have no chance of sampling, only boots tell what chance is."""

import numpy as np
import pytest

from lab.profiles.analysis.frame_alignment import align
from lab.profiles.analysis.frame_shifts import compare_profiles, doubt, sides_of
from lab.profiles.analysis.frame_tree import build_tree
from lab.profiles.analysis.share_shifts import Sides
from lab.profiles.analysis.share_table import share_table
from lab.profiles.analysis.wait_shifts import compare_waits, wait_intervals

THOROUGH = pytest.mark.thorough
SHAPES = ("even", "restless", "boots", "uneven", "heavy")


def sides(*boots: int) -> Sides:
    return Sides(np.repeat(np.arange(len(boots)), boots), 0, 1)


def restlessness(rng: np.random.Generator, shape: str, frames: int, boots: int) -> np.ndarray:
    """Return how much more or less often each frame waits in each boot, for no reason."""
    factors = np.ones((frames, boots))
    if shape == "restless":
        return np.exp(rng.normal(0, 0.3, factors.shape))
    if shape == "boots":
        return np.exp(rng.normal(0, 0.5, (1, boots))) * factors
    if shape == "uneven":
        spread = np.exp(rng.normal(np.log(0.2), 1, (frames, 1)))
        return np.minimum(np.exp(rng.normal(0, 1, factors.shape) * spread), 20)
    return factors


def waits(rng: np.random.Generator, boots: int, *, shape: str, frames: int = 40) -> np.ndarray:
    """Nanoseconds waited: int64[frames, boots]; a few waits each, each of another length, none for a reason."""
    often = np.minimum((rng.pareto(0.9, frames) + 0.05) * 8, 1500)[:, None]
    length = np.exp(rng.normal(10, 1, frames))
    numbers = rng.poisson(often * restlessness(rng, shape, frames, boots))
    tail = 2.2 if shape == "heavy" else 1.2
    return sums(rng, np.log(length), tail, numbers)


def sums(rng: np.random.Generator, log_length: np.ndarray, spread: float, numbers: np.ndarray) -> np.ndarray:
    """Nanoseconds of so many waits: int64[frames, boots]. log_length: float64[frames], of their usual length."""
    each = rng.lognormal(np.repeat(log_length, numbers.sum(axis=1)), spread)
    ends = np.cumsum(numbers.ravel())
    totals = np.diff(np.concatenate([[0.0], np.concatenate([[0.0], np.cumsum(each)])[ends]]))
    return totals.reshape(numbers.shape).astype(np.int64)


@pytest.mark.parametrize("scale", ["samples", "shares"])
@pytest.mark.parametrize(
    "boots",
    [(3, 3), pytest.param((6, 3), marks=THOROUGH), pytest.param((5, 5), marks=THOROUGH), (6, 3, 3, 3)],
)
@pytest.mark.parametrize("shape", SHAPES)
def test_of_pages_of_waits_on_which_nothing_moved_few_call_anything(
    boots: tuple[int, ...], shape: str, scale: str
) -> None:
    rng = np.random.default_rng(5)
    called = 0
    for _ in range(60):
        times = waits(rng, sum(boots), shape=shape)
        shifts = compare_waits(times, times.sum(axis=0), sides(*boots), scale=scale)  # type: ignore[arg-type]
        called += bool(shifts.certain.any())
    # 5 % are 3 of 60; 8 or more happen once in 400 times then.
    assert called < 8


def test_a_lock_that_is_waited_for_a_third_as_long_is_found_by_five_boots_a_side() -> None:
    rng = np.random.default_rng(6)
    hits = 0
    for _ in range(20):
        times = waits(rng, 10, shape="even")
        times[0] = rng.lognormal(13, 0.2, 10)
        times[0, 5:] //= 3
        shifts = compare_waits(times, times.sum(axis=0), sides(5, 5))
        hits += bool(shifts.certain[0])
        assert shifts.log_ratio[0] == pytest.approx(-1.58, abs=0.6)
    assert hits >= 7


def test_one_long_wait_is_not_certain_however_many_nanoseconds_it_is() -> None:
    rng = np.random.default_rng(7)
    times = waits(rng, 6, shape="even")
    times[0] = [0, 0, 0, 0, 0, 10**12]
    times[1] = [10**6, 10**6, 10**6, 10**6, 10**6, 10**12]
    assert not compare_waits(times, times.sum(axis=0), sides(3, 3)).certain[:2].any()


def test_a_boot_that_waits_longer_counts_no_more_than_the_others() -> None:
    rng = np.random.default_rng(8)
    called = 0
    for _ in range(60):
        shares = np.exp(rng.normal(0, 0.4, (30, 6)))
        whole = np.array([1e9, 1e6, 1e6, 1e6, 1e6, 1e9])
        times = np.asarray(shares / shares.sum(axis=0) * whole, np.int64)
        called += bool(compare_waits(times, times.sum(axis=0), sides(3, 3), scale="shares").certain.any())
    assert called < 8


def test_time_waited_is_compared_where_shares_only_follow_another_lock() -> None:
    rng = np.random.default_rng(9)
    times = np.asarray(rng.lognormal(14, 0.02, (20, 8)), np.int64)
    times[0, 4:] //= 20
    times[0, :4] *= 20
    whole = times.sum(axis=0)
    assert compare_waits(times, whole, sides(4, 4)).certain.tolist() == [True] + [False] * 19
    assert compare_waits(times, whole, sides(4, 4), scale="shares").certain.all()


@pytest.mark.parametrize("boots", [(1, 1), (2, 1), (2, 2)])
def test_so_few_boots_make_no_wait_certain_and_no_interval(boots: tuple[int, int]) -> None:
    times = np.array([[900] * boots[0] + [10] * boots[1], [100] * boots[0] + [990] * boots[1]])
    shifts = compare_waits(times, times.sum(axis=0), sides(*boots))
    assert np.isnan(shifts.p).all()
    assert np.isnan(wait_intervals(times, sides(*boots).group, 0).low).all()
    assert shifts.base.tolist() == [900.0, 100.0]


def test_nothing_waited_at_all_is_no_difference() -> None:
    nothing = np.zeros((2, 6), np.int64)
    shifts = compare_waits(nothing, nothing.sum(axis=0), sides(3, 3))
    assert shifts.log_ratio.tolist() == [0.0, 0.0]
    assert np.isnan(shifts.q).all()


def test_boots_that_agree_exactly_are_no_difference() -> None:
    same = np.full((3, 6), 700, np.int64)
    assert not compare_waits(same, same.sum(axis=0), sides(3, 3)).certain.any()


def test_intervals_hold_the_true_time_as_often_as_they_say() -> None:
    rng = np.random.default_rng(10)
    held = tried = 0
    for _ in range(80):
        numbers = rng.poisson(40, (20, 6))
        times = sums(rng, np.full(20, 10.0), 1.0, numbers)
        interval = wait_intervals(times, sides(3, 3).group, 0)
        true = 40 * np.exp(10.5)
        held += int(((interval.low <= true) & (true <= interval.high)).sum())
        tried += 20
    assert 0.90 < held / tried < 0.995


def boot(reads: int) -> dict[tuple[str, ...], int]:
    return {("x", "open", "down_read"): reads * 10**6, ("x", "open", "mutex_lock"): 10**8 + reads}


def test_a_page_of_waits_has_time_a_boot_and_its_certainty_for_each_variant() -> None:
    united = align([build_tree(boot(reads).items()) for reads in (680, 690, 685, 260, 265, 255)], idle=True)
    owners = np.repeat([0, 1], 3)
    compared = compare_profiles(united, sides_of(owners, base=0, candidate=1), unit="ns")
    q_values = {
        united.names[n]: q for n, q in zip(united.name.tolist(), compared.samples.q.tolist(), strict=True)
    }
    assert q_values["down_read"] < 0.01
    ((_, candidate),) = share_table([united.total], united.samples, owners, base=0, twin=None, unit="ns")
    assert candidate.interval.share[0] == pytest.approx(360e6, rel=0.02)


def test_a_variant_that_no_longer_waits_is_an_answer_not_a_doubt() -> None:
    united = align([build_tree(stacks.items()) for stacks in [boot(5)] * 3 + [{}] * 3], idle=True)
    side = sides_of(np.repeat([0, 1], 3), base=0, candidate=1)
    assert doubt(united, side, unit="ns") == ""
    assert doubt(united, side) != ""
    assert compare_profiles(united, side, unit="ns").samples.certain.any()
