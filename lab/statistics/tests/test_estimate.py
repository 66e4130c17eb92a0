# SPDX-License-Identifier: GPL-2.0-or-later
from math import comb, exp, nan

import numpy as np
import pytest

from lab.statistics.block_model import disagreement
from lab.statistics.estimate import Arm, boot_number, estimate
from lab.statistics.rank_test import p_values
from lab.tests.noise import Floats, experiments, layout

TRIALS = 2000


def arm(name: str, *boots: float, first: int = 0) -> Arm:
    return Arm(name, {first + block: (value,) for block, value in enumerate(boots)})


def arms(logs: Floats) -> list[Arm]:
    """logs: shape (blocks, arms)."""
    return [arm(str(i), *np.exp(0.05 * logs[:, i])) for i in range(logs.shape[1])]


def alarms(kind: str, blocks: int, count: int, shift: float = 0.0) -> float:
    """Share of simulated experiments with p <= 5 %; shift in standard deviations of a boot."""
    logs = experiments(kind, TRIALS, blocks, count, seed=blocks)
    logs[:, :, 0] += shift
    return float(np.mean(p_values(logs.reshape(TRIALS, -1), layout(blocks, count)) <= 0.05))


# 2,000 trials of a true rate of 5 % have a standard error of 0.5 points; docs/verdicts.md has finer figures.
@pytest.mark.parametrize("kind", ["normal", "heavy tails", "bimodal", "autocorrelated"])
@pytest.mark.parametrize("blocks", [2, 3, 5, 10, 20])
def test_equal_kernels_are_told_apart_in_one_of_twenty_experiments(kind: str, blocks: int) -> None:
    assert 0.025 <= alarms(kind, blocks, 3) <= 0.07


@pytest.mark.parametrize("blocks", [3, 5])
def test_other_arms_lend_their_boots_without_raising_false_alarms(blocks: int) -> None:
    assert 0.025 <= alarms("bimodal", blocks, 6) <= 0.07


def test_other_arms_lend_their_boots_and_fewer_blocks_tell() -> None:
    assert alarms("normal", 3, 8, shift=2.5) > alarms("normal", 3, 3, shift=2.5) + 0.05


def test_the_twin_alone_against_the_base_raises_no_more_false_alarms() -> None:
    assert max(alarms(kind, blocks, 2) for kind in ("normal", "autocorrelated") for blocks in (3, 8)) <= 0.07


@pytest.mark.parametrize(
    ("kind", "blocks", "shift"), [("normal", 3, 4.5), ("autocorrelated", 3, 2.5), ("bimodal", 10, 1.5)]
)
def test_real_shifts_are_found(kind: str, blocks: int, shift: float) -> None:
    assert alarms(kind, blocks, 3, shift=shift) >= 0.85


def test_a_candidate_noisier_than_the_base_is_judged_by_its_own_noise() -> None:
    logs = experiments("normal", TRIALS, 10, 3, seed=4)
    logs[:, :, 0] *= 3
    assert np.mean(p_values(logs.reshape(TRIALS, -1), layout(10, 3)) <= 0.05) <= 0.07
    assert np.mean(disagreement(logs.reshape(TRIALS, -1), layout(10, 3)) < 0.01) > 0.5


@pytest.mark.thorough
@pytest.mark.parametrize(("kind", "blocks"), [("normal", 3), ("bimodal", 6), ("autocorrelated", 9)])
def test_the_interval_covers_the_true_shift_and_agrees_with_the_p_value(kind: str, blocks: int) -> None:
    logs = experiments(kind, 100, blocks, 3, seed=8)
    logs[:, :, 0] += 1.0
    batch = p_values(0.05 * logs.reshape(100, -1), layout(blocks, 3))
    covered = 0
    for trial, expected in zip(logs, batch, strict=True):
        candidate, *base = arms(trial)
        shift = estimate(base, candidate)
        assert shift.p_value == pytest.approx(expected)
        low, ratio, high = shift.low or 0, shift.ratio or 0, shift.high or 0
        assert 0 < low <= ratio <= high
        assert (expected <= 0.05) == (not low <= 1 <= high)
        covered += low <= exp(0.05) <= high
    assert 0.88 <= covered / 100 <= 1


def test_drift_between_blocks_cancels() -> None:
    drift = np.array([100.0, 150.0, 220.0, 300.0, 500.0, 800.0])
    jitter = np.array([1.0, 1.001, 0.999, 1.0, 1.002, 0.998])
    shift = estimate([arm("base", *drift)], arm("new", *(1.1 * drift * jitter)))
    assert shift.ratio == pytest.approx(1.1, rel=1e-3)
    assert shift.low == pytest.approx(1.1, rel=3e-3)


def test_one_wild_boot_does_not_move_ranks() -> None:
    base = [arm("base", *np.linspace(99, 101, 7)), arm("twin", *np.linspace(101, 99, 7))]
    calm = estimate(base, arm("new", 90, 91, 89, 90, 92, 88, 90))
    wild = estimate(base, arm("new", 90, 91, 89, 90, 92, 88, 9000))
    assert wild.ratio == pytest.approx(calm.ratio, rel=0.02)
    assert "rank test in 7 randomised blocks" in wild.method


def test_missing_boots_leave_the_others_comparable() -> None:
    base = [arm("base", 100, 120, 140, 160), Arm("twin", {0: (101.0,), 2: (139.0,), 3: (161.0,)})]
    candidate = Arm("new", {1: (132.5,), 2: (154.0,), 3: (175.0,), 9: (7.0,)})
    shift = estimate(base, candidate, [arm("other", 50, 61, 69, 81)])
    assert shift.boots == 3
    assert shift.ratio == pytest.approx(1.1, rel=0.01)
    # Boots, less blocks, less arms but the base. Block 9 has a single boot and tells nothing.
    assert shift.freedom == 15 - 5 - 2


def test_boots_that_agree_exactly_give_an_exact_ratio_once_luck_is_ruled_out() -> None:
    base = [arm("base", 5, 5, 5), arm("twin", 5, 5, 5)]
    same, other = estimate(base, arm("new", 5, 5, 5)), estimate(base, arm("new", 6, 6, 6))
    assert (same.ratio, same.low, same.high, same.p_value) == (1.0, 1.0, 1.0, 1.0)
    assert other.ratio == other.low == other.high == pytest.approx(1.2)
    assert other.p_value == pytest.approx(1 / comb(9, 3))
    early = estimate(base[:1], arm("new", 6, 6, 6))
    assert early.ratio == pytest.approx(1.2)
    assert early.low is None
    assert early.why == "boots of a side agree exactly, but 3 blocks are too few to rule out chance"


def test_zeros_have_a_ratio_only_among_themselves() -> None:
    assert estimate([arm("base", 0, 0, 0)], arm("new", 0, 0, 0)).ratio == 1.0
    torn = estimate([arm("base", 0, 1, 1)], arm("new", 1, 1, 1))
    assert (torn.ratio, torn.why) == (None, "0 in 1 of 6 boots: there is no ratio")
    assert torn.median == 1.0


@pytest.mark.parametrize(
    ("base", "candidate", "why"),
    [
        ([arm("base", 1, 2)], Arm("new", {}), "no valid boot of the candidate"),
        ([], arm("new", 1, 2), "no valid boot of the base"),
        ([arm("base", 1, 2)], arm("new", 1, 2, first=5), "no boot of both sides in one block"),
        ([arm("base", 1, nan)], arm("new", 1, 2), "1 of 4 boots gave no finite number"),
        ([arm("base", 1, -2)], arm("new", 1, 2), "1 of 4 boots are below 0: there is no ratio"),
        ([arm("base", 1, 2)], arm("new", 2), "an interval needs 2 blocks, both sides share 1"),
    ],
)
def test_data_that_carry_no_shift_say_why(base: list[Arm], candidate: Arm, why: str) -> None:
    shift = estimate(base, candidate)
    assert (shift.low, shift.p_value, shift.why) == (None, None, why)


def test_other_arms_without_a_logarithm_are_left_out() -> None:
    base, candidate = [arm("base", 1.0, 1.1, 0.9)], arm("new", 1.2, 1.25, 1.1)
    alone = estimate(base, candidate)
    assert estimate(base, candidate, [arm("odd", 0, 1, 1), arm("nan", nan, 1, 1)]) == alone


def test_a_boot_counts_as_a_quantile_of_its_iterations() -> None:
    assert boot_number([3.0, 100.0, 4.0]) == 4.0
    assert boot_number(range(101), 0.99) == 99.0
    slow = Arm("new", {block: (1.0, 1.0, 1.0, 8.0 + block) for block in range(4)})
    fast = Arm("base", {block: (1.0, 1.0, 1.0, 4.1 + block) for block in range(4)})
    assert estimate([fast], slow).ratio == 1.0
    tail = estimate([fast], slow, quantile=1.0)
    assert (tail.ratio or 0) > 1.5


def test_a_boot_of_0_in_a_block_of_one_side_alone_does_not_spoil_the_shift() -> None:
    base = Arm("base", {0: (10.0,), 1: (11.0,), 2: (12.0,), 3: (0.0,)})
    candidate = Arm("p", {0: (20.0,), 1: (22.5,), 2: (23.0,)})
    shift = estimate([base], candidate, [Arm("q", {0: (10.5,), 1: (10.4,), 2: (12.9,)})])
    assert shift.low is not None
    assert shift.high is not None
    assert 1.0 < shift.low < 2.0 < shift.high < 4.0
