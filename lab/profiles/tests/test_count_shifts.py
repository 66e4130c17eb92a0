# SPDX-License-Identifier: GPL-2.0-or-later
"""The distance between exact counts from which a difference is the patch's."""

from __future__ import annotations

import numpy as np
import pytest

from lab.profiles.analysis.count_shifts import NOISE, changed, noise_of


def counts(*rows: list[int]) -> np.ndarray:
    return np.array(rows, np.int64)


def test_the_factor_is_twice_what_halves_of_the_base_lie_apart() -> None:
    # 10 and 11 against 20 and 21: apart by 9, 9 times what either half differs by in itself.
    assert noise_of(counts([10, 11, 20, 21], [5, 5, 5, 5])) == 18
    assert noise_of(counts([10, 20, 11, 21], [5, 5, 5, 5])) == 18, "whichever boots are base-again's"


def test_boots_that_hardly_differ_do_not_make_the_factor_less_than_three() -> None:
    assert noise_of(counts([10, 11, 10, 11])) == 3
    assert noise_of(counts([7, 7, 7, 7])) == 3


@pytest.mark.parametrize("boots", [1, 2, 3])
def test_with_fewer_than_four_boots_of_the_base_it_is_the_documented_one(boots: int) -> None:
    assert noise_of(counts([10, 500, 20][:boots])) == NOISE


def test_no_row_of_the_base_itself_is_ever_called_the_patchs() -> None:
    draw = np.random.default_rng(7)
    for _ in range(200):
        base = draw.integers(0, 50, (30, 4)) * draw.integers(0, 2, (30, 1)) + 1000
        factor = noise_of(base)
        for half in ([0, 1], [0, 2], [0, 3]):
            rest = [boot for boot in range(4) if boot not in half]
            chosen, other = base[:, half], base[:, rest]
            gap = np.maximum(other.min(axis=1) - chosen.max(axis=1), chosen.min(axis=1) - other.max(axis=1))
            spread = np.maximum(np.ptp(chosen, axis=1), np.ptp(other, axis=1))
            assert not ((gap > factor * spread) & (spread > 0)).any()


def test_one_instruction_in_a_row_that_never_differs_is_the_patchs_whatever_the_others_do() -> None:
    base = counts([2000, 2000, 2000, 2000], [300, 900, 500, 400], [10, 11, 2000, 2001])
    candidate = counts([2100, 2100], [1500, 1100], [5000, 5001])
    assert changed(base, candidate).tolist() == [True, False, False]


def test_many_boots_cost_no_more_than_six() -> None:
    base = np.random.default_rng(1).integers(0, 9, (5, 40))
    assert noise_of(base) == noise_of(base[:, :6])
