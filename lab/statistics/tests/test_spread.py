# SPDX-License-Identifier: GPL-2.0-or-later
"""A patch that makes boots noisier, or calmer, and shifts nothing."""

import numpy as np
import pytest

from bench.stats_null import by_name
from lab.statistics.arms import Arm
from lab.statistics.spread import SpreadRatio, compare_spread, spread_note, spread_p_values

TRIALS = 300
SHAPES = ("normal", "heavy tails (t, 3)", "bimodal 1:4", "drift", "AR(1), 0.8")


def called(name: str, boots: int) -> float:
    """Share of experiments of that shape whose spread is called changed at 5 %."""
    values = by_name(name).draw(TRIALS, boots, np.random.default_rng([boots, 11]))
    parts = (spread_p_values(np.log(values[at : at + 50])) for at in range(0, TRIALS, 50))
    return float(np.mean(np.concatenate(list(parts)) <= 0.05))


def arms(values: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> list[Arm]:
    return [Arm(str(i), {b: (float(v),) for b, v in enumerate(values[:, i])}) for i in range(values.shape[1])]


# Beyond eight blocks a part of all orders is tried.
@pytest.mark.parametrize(
    ("name", "boots"),
    [
        *((name, 5) for name in SHAPES),
        (SHAPES[0], 9),
        *(pytest.param(name, 9, marks=pytest.mark.thorough) for name in SHAPES[1:]),
    ],
)
def test_boots_of_any_shape_that_differ_as_much_as_the_bases_are_seldom_called(name: str, boots: int) -> None:
    # Three standard errors of 300 trials of 5 % are 3.8 points.
    assert called(name, boots) <= 0.088


@pytest.mark.parametrize(("name", "least"), [("×16", 0.75), ("×4", 0.2), ("×1/16", 0.15)])
def test_a_candidate_that_differs_more_or_less_is_called(name: str, least: float) -> None:
    assert called(f"candidate's variance {name}", 10) >= least


def test_a_shift_is_no_change_of_spread() -> None:
    values = by_name("normal").draw(50, 8, np.random.default_rng(3))
    shifted = values * np.array([1.0, 1.0, 1.5])
    assert np.allclose(spread_p_values(np.log(values)), spread_p_values(np.log(shifted)))


def test_the_ratio_is_that_of_standard_deviations() -> None:
    values = by_name("candidate's variance ×16").draw(1, 200, np.random.default_rng(4))[0]
    base, twin, candidate = arms(values)
    spread = compare_spread([base, twin], candidate)
    assert spread is not None
    assert spread.low < 4 < spread.high
    assert spread.ratio == pytest.approx(4, rel=0.2)
    assert spread_note("ns_per_open", "p", spread, 0.001) == (
        f"ns_per_open: boots of p differ {spread.ratio:.2g} times as much as the base's "
        f"({spread.low:.2g} to {spread.high:.2g})"
    )


def test_what_is_not_certain_is_not_said() -> None:
    assert spread_note("m", "p", SpreadRatio(3.0, 1.5, 5.0, 0.001), 0.06) == ""
    assert spread_note("m", "p", SpreadRatio(3.0, 0.9, 5.0, 0.001), 0.01) == ""
    assert spread_note("m", "p", SpreadRatio(3.0, 1.5, 5.0, 0.06), None) == ""


@pytest.mark.parametrize(
    "values",
    [
        np.ones((9, 3)),
        np.tile([1.0, 1.0, 2.0], (9, 1)),
        np.arange(12.0).reshape(4, 3) + 1,
        np.zeros((9, 3)),
        np.full((9, 3), np.nan),
        np.full((9, 3), np.inf),
        -np.ones((9, 3)),
    ],
)
def test_boots_that_tell_nothing_of_their_spread_have_none(
    values: np.ndarray[tuple[int, int], np.dtype[np.float64]],
) -> None:
    base, twin, candidate = arms(values)
    assert compare_spread([base, twin], candidate) is None


def test_without_a_twin_there_is_no_spread_to_compare_with() -> None:
    base, _, candidate = arms(np.random.default_rng(1).random((9, 3)))
    assert compare_spread([base], candidate) is None
