# SPDX-License-Identifier: GPL-2.0-or-later
"""Shares that moved and shares that did not: null data of several shapes, known shifts, degenerate input."""

import numpy as np
import pytest

from lab.profiles.analysis.frame_alignment import align
from lab.profiles.analysis.frame_shifts import compare_frames, compare_profiles, doubt, sides_of
from lab.profiles.analysis.frame_tree import build_tree
from lab.profiles.analysis.overdispersion import moderate
from lab.profiles.analysis.share_shifts import Sides, adjusted, compare, intervals
from lab.profiles.analysis.share_table import share_table

FRAMES = 300


def page(rng: np.random.Generator, boots: int, *, shape: str, samples: int = 5000) -> np.ndarray:
    """Counts of frames that differ by nothing but chance: int64[frames, boots]."""
    shares = np.tile(rng.pareto(1.1, FRAMES) + 0.02, (boots, 1))
    if shape == "restless":
        shares *= np.exp(rng.normal(0, 0.15, shares.shape))
    if shape == "uneven":
        shares *= np.exp(rng.normal(0, 1, shares.shape) * np.exp(rng.normal(np.log(0.05), 1, FRAMES)))
    length = samples * np.exp(rng.normal(0, 0.2, (boots, 1)))
    expected = shares / shares.sum(axis=1, keepdims=True) * length
    return np.asarray(rng.poisson(expected).T, np.int64)


def sides(*boots: int) -> Sides:
    return Sides(np.repeat(np.arange(len(boots)), boots), 0, 1)


@pytest.mark.parametrize("boots", [(3, 3), (6, 3), (5, 5), (3, 3, 3)])
@pytest.mark.parametrize("shape", ["even", "restless", "uneven"])
def test_of_pages_on_which_nothing_moved_few_call_anything(boots: tuple[int, ...], shape: str) -> None:
    rng = np.random.default_rng(5)
    called = 0
    for _ in range(60):
        counts = page(rng, sum(boots), shape=shape)
        called += bool(compare(counts, counts.sum(axis=0), sides(*boots)).certain.any())
    # 5 % are 3 of 60; 8 or more happen once in 400 times then.
    assert called < 8


def test_a_frame_that_loses_a_third_is_found_by_three_boots_a_side() -> None:
    rng = np.random.default_rng(6)
    hits = 0
    for _ in range(20):
        counts = page(rng, 6, shape="even")
        counts[0] = rng.poisson(counts[1:].sum(axis=0) * np.repeat([0.06, 0.04], 3))
        shifts = compare(counts, counts.sum(axis=0), sides(3, 3))
        hits += bool(shifts.certain[0])
        assert shifts.log_ratio[0] == pytest.approx(-0.58, abs=0.35)
    assert hits >= 17


def test_absolute_samples_move_where_shares_do_not() -> None:
    rng = np.random.default_rng(7)
    counts = page(rng, 8, shape="even")
    counts[:, 4:] *= 3
    assert not compare(counts, counts.sum(axis=0), sides(4, 4)).certain.any()
    shifts = compare(counts, counts.sum(axis=0), sides(4, 4), scale="samples")
    assert shifts.log_ratio[counts.sum(axis=1) > 500] == pytest.approx(1.58, abs=0.8)


@pytest.mark.parametrize("boots", [(1, 1), (2, 1), (2, 2)])
def test_so_few_boots_make_nothing_certain_and_no_interval(boots: tuple[int, int]) -> None:
    counts = np.array([[900] * boots[0] + [10] * boots[1], [100] * boots[0] + [990] * boots[1]])
    shifts = compare(counts, counts.sum(axis=0), sides(*boots))
    assert np.isnan(shifts.p).all()
    assert not shifts.certain.any()
    assert np.isnan(intervals(counts, counts.sum(axis=0), sides(*boots).group, 0).low).all()
    assert shifts.log_ratio[0] < -5


def test_frames_of_few_samples_and_those_that_hold_all_are_not_tested() -> None:
    counts = np.array(
        [[1000, 1000, 1000, 1000, 1000, 1000], [3, 3, 3, 0, 0, 0], [500, 500, 500, 400, 400, 400]]
    )
    shifts = compare(counts, counts[0], sides(3, 3))
    assert np.isnan(shifts.p).tolist() == [True, True, False]


def test_no_samples_at_all_are_no_difference() -> None:
    nothing = np.zeros((2, 6), np.int64)
    shifts = compare(nothing, nothing.sum(axis=0), sides(3, 3))
    assert shifts.log_ratio.tolist() == [0.0, 0.0]
    assert np.isnan(shifts.q).all()
    assert intervals(nothing, nothing.sum(axis=0), sides(3, 3).group, 0).share.tolist() == [0.0, 0.0]


def test_intervals_hold_the_true_share_as_often_as_they_say() -> None:
    rng = np.random.default_rng(8)
    held = tried = 0
    for _ in range(60):
        counts = page(rng, 6, shape="restless", samples=20_000)
        counts[:20] = rng.poisson(200 * np.exp(rng.normal(0, 0.15, (20, 6))))
        samples = counts.sum(axis=0)
        interval = intervals(counts, samples, sides(3, 3).group, 0)
        true = 200 * np.exp(0.15**2 / 2) / samples.mean()
        held += int(((interval.low <= true) & (true <= interval.high))[:20].sum())
        tried += 20
    assert 0.90 < held / tried < 0.99


def test_a_factor_is_never_below_that_of_sampling_and_follows_the_others() -> None:
    few = moderate(np.array([0.1, 4.0]), 4, np.array([50.0, 50.0]))
    assert few.factor.tolist() == [1.0, 4.0]
    rng = np.random.default_rng(9)
    alike = moderate(5 * rng.chisquare(4, 400) / 4, 4, np.full(400, 80.0))
    assert alike.factor == pytest.approx(5, rel=0.5)
    assert alike.freedom[0] > 20
    mixed = moderate(np.exp(rng.normal(0, 2, 400)), 4, np.full(400, 80.0))
    assert mixed.freedom[0] < 10


def test_q_values_count_only_what_was_tested() -> None:
    q = adjusted(np.array([0.001, np.nan, 0.5]))
    assert q.tolist() == pytest.approx([0.004, np.nan, 1.0], nan_ok=True)


def boot(reads: int) -> dict[tuple[str, ...], int]:
    return {("x", "open", "down_read"): reads, ("x", "open", "memcpy"): 1000 - reads, ("x", "gone"): 50}


def test_a_chain_of_frames_with_the_same_samples_has_one_answer() -> None:
    united = align([build_tree(boot(reads).items()) for reads in (680, 690, 685, 260, 265, 255)])
    shifts = compare_frames(united, sides_of(np.repeat([0, 1], 3), base=0, candidate=1))
    q_values = {united.names[n]: q for n, q in zip(united.name.tolist(), shifts.q.tolist(), strict=True)}
    assert q_values["down_read"] < 0.001
    assert np.isnan(q_values["x"])
    assert q_values["open"] == pytest.approx(q_values["gone"])


def test_the_bases_twin_counts_as_base_unless_it_is_what_is_compared() -> None:
    owners = np.array([0, 0, 1, 2])
    assert sides_of(owners, base=0, candidate=1, twin=2).group.tolist() == [0, 0, 1, 0]
    assert sides_of(owners, base=0, candidate=2, twin=2).group.tolist() == [0, 0, 1, 2]


@pytest.mark.parametrize(
    ("profiles", "owners", "line"),
    [
        ([boot(5)] * 4, [0, 0, 0, 0], "The variant has no profile."),
        ([boot(5)] * 4, [1, 1, 1, 1], "The base has no profile."),
        ([boot(5), {}, boot(5), {}], [0, 1, 0, 1], "The variant's profile holds no sample of a busy CPU."),
        ([boot(5), {("y", "z"): 9}], [0, 1], "no symbol in common"),
        ([boot(5), boot(6)], [0, 1], "profile_boots"),
        ([boot(5)] * 6, [0, 0, 0, 1, 1, 1], ""),
    ],
)
def test_why_nothing_can_be_certain_is_said(
    profiles: list[dict[tuple[str, ...], int]], owners: list[int], line: str
) -> None:
    united = align([build_tree(profile.items()) for profile in profiles])
    side = sides_of(np.array(owners), base=0, candidate=1)
    assert line in doubt(united, side)
    assert bool(line) == bool(doubt(united, side))
    assert not compare_profiles(united, side).shares.certain.any()


def test_every_family_of_a_table_has_its_own_rate_of_false_calls() -> None:
    counts = np.array([[680, 690, 685, 260, 265, 255], [320, 310, 315, 740, 735, 745]])
    tables = share_table([counts, counts[:1]], counts.sum(axis=0), np.repeat([0, 1], 3), base=0, twin=None)
    assert [len(family) for family in tables] == [2, 2]
    assert tables[0][0].shifts is None
    moved = [family[1].shifts for family in tables]
    assert [len(shifts.q) for shifts in moved if shifts] == [2, 1]
    assert (
        share_table([counts], counts.sum(axis=0), np.repeat([0, 1], 3), base=None, twin=None)[0][1].shifts
        is None
    )
