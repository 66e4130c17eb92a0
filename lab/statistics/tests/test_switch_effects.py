# SPDX-License-Identifier: GPL-2.0-or-later
from collections.abc import Mapping
from itertools import combinations
from math import log

import numpy as np
import pytest

from lab.statistics.arms import Arm
from lab.statistics.switch_effects import SwitchEffect, effects

On = tuple[str, ...]
EVERY = [on for size in range(4) for on in combinations("abc", size)]
# Log ratios that a switch, or two together beyond that, are given.
TRUTH: Mapping[On, float] = {("a",): log(0.9), ("b",): log(1.05), ("a", "b"): log(0.93)}


def simulated(
    settings: list[On], blocks: int, seed: int, truth: Mapping[On, float] = TRUTH, noise: float = 0.02
) -> dict[On, Arm]:
    rng = np.random.default_rng(seed)
    drift = 0.3 * rng.normal(size=blocks)
    return {
        on: Arm(
            "+".join(on) or "base",
            {
                block: (
                    float(
                        100
                        * np.exp(
                            drift[block]
                            + sum(size for term, size in truth.items() if set(term) <= set(on))
                            + noise * rng.normal()
                        )
                    ),
                )
                for block in range(blocks)
            },
        )
        for on in settings
    }


def by_switches(estimates: list[SwitchEffect]) -> dict[On, SwitchEffect]:
    return {effect.switches: effect for effect in estimates}


def test_an_injected_interaction_is_recovered_within_its_interval() -> None:
    estimates = by_switches(effects(simulated(EVERY, 4, seed=1), "abc"))
    # A main effect averages over the other switch: a alone, and a with b.
    assert (estimates["a",].low or 0) < 0.9 * 0.93**0.5 < (estimates["a",].high or 0) < 1
    assert (estimates["a", "b"].low or 0) < 0.93 < (estimates["a", "b"].high or 0) < 1
    assert (estimates["a", "b"].p_value or 1) < 0.001
    assert (estimates["c",].low or 0) < 1 < (estimates["c",].high or 0)
    assert [effect.switches for effect in effects({}, "abc")][3:] == [("a", "b"), ("a", "c"), ("b", "c")]


@pytest.mark.thorough
def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    expected = {("a",): log(0.9) + log(0.93) / 2, ("a", "b"): log(0.93), ("b", "c"): 0.0}
    covered = [
        (estimates[on].low or 0) <= np.exp(size) <= (estimates[on].high or 0)
        for seed in range(250)
        for estimates in [by_switches(effects(simulated(EVERY, 2, seed), "abc"))]
        for on, size in expected.items()
    ]
    assert 0.92 <= np.mean(covered) <= 0.975


def test_the_twin_of_the_base_narrows_the_intervals() -> None:
    arms = simulated([(), ("a",)], 4, seed=2)
    twin = simulated([()], 4, seed=2)[()]
    alone, together = effects(arms, "a")[0], effects(arms, "a", controls=[twin])[0]
    assert (together.high or 0) / (together.low or 1) < (alone.high or 0) / (alone.low or 1)


def test_pruned_combinations_leave_what_can_be_told() -> None:
    estimates = by_switches(effects(simulated([(), ("a",), ("b",), ("c",), ("a", "c")], 4, seed=3), "abc"))
    assert estimates["a", "b"].why == "a and b were never on together"
    assert estimates["b", "c"].why == "b and c were never on together"
    assert estimates["a", "c"].ratio == pytest.approx(1, abs=0.05)
    assert estimates["a",].ratio == pytest.approx(0.9, abs=0.03)
    assert estimates["b",].ratio == pytest.approx(1.05, abs=0.03)


@pytest.mark.parametrize(
    ("settings", "on", "why"),
    [
        ([(), ("a",)], ("b",), "b was never on"),
        ([("a",), ("a", "b")], ("a",), "a was never off"),
        ([(), ("a", "b")], ("a",), "not separable from other effects with these variants"),
        ([(), ("a",), ("a", "b")], ("a", "b"), "b was never on without a"),
        ([("a",), ("b",), ("a", "b")], ("a", "b"), "a and b were never off together"),
    ],
)
def test_what_cannot_be_told_says_why(settings: list[On], on: On, why: str) -> None:
    effect = by_switches(effects(simulated(settings, 3, seed=4), "ab"))[on]
    assert (effect.ratio, effect.why) == (None, why)


def test_a_variant_without_a_valid_boot_was_not_run() -> None:
    arms = simulated([(), ("a",), ("b",)], 3, seed=4) | {("a", "b"): Arm("a+b", {})}
    assert by_switches(effects(arms, "ab"))["a", "b"].why == "a and b were never on together"


def test_a_cumulative_series_tells_each_patch_by_the_step_it_makes() -> None:
    estimates = by_switches(effects(simulated([(), ("a",), ("a", "b"), ("a", "b", "c")], 5, seed=5), "abc"))
    assert estimates["a",].ratio == pytest.approx(0.9, abs=0.03)
    assert estimates["b",].ratio == pytest.approx(1.05 * 0.93, abs=0.03)


def test_one_block_has_ratios_but_no_intervals() -> None:
    effect = effects(simulated([(), ("a",)], 1, seed=6), "a")[0]
    assert effect.ratio == pytest.approx(0.9, abs=0.1)
    assert (effect.low, effect.why) == (
        None,
        "one block: the noise cannot be estimated, an interval needs 2 blocks",
    )


def test_boots_that_agree_exactly_give_exact_effects() -> None:
    arms = {(): Arm("base", {0: (100.0,), 1: (100.0,)}), ("a",): Arm("a", {0: (102.0,), 1: (102.0,)})}
    effect = effects(arms, "a")[0]
    assert effect.ratio == effect.low == effect.high == pytest.approx(1.02)
    assert effect.why == "boots of a variant agree exactly"


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_what_is_no_number_gives_no_effects(bad: float) -> None:
    arms = simulated([(), ("a",)], 3, seed=7)
    arms["a",] = Arm("a", {0: (bad,)})
    assert effects(arms, "a")[0].why == "some boot gave no finite number"


def with_zeros(seed: int, blocks: int, *, adds: float = 0.0) -> dict[On, Arm]:
    """Boots of two switches of which three in ten are 0; switch a adds so much, b nothing."""
    rng = np.random.default_rng(seed)
    return {
        on: Arm(
            "+".join(on) or "base",
            {
                block: (float((rng.random() > 0.3) * 100 * np.exp(0.3 * rng.normal()) + adds * ("a" in on)),)
                for block in range(blocks)
            },
        )
        for on in [(), ("a",), ("b",), ("a", "b")]
    }


def test_boots_of_0_have_differences_in_place_of_ratios_and_say_so() -> None:
    estimates = by_switches(effects(with_zeros(1, 8, adds=200), "ab"))
    a, b, both = estimates["a",], estimates["b",], estimates["a", "b"]
    assert (a.ratio, a.low, a.high) == (None, None, None)
    assert (a.p_value or 1) < 0.001 < 0.05 < (b.p_value or 0)
    assert "boots: there is no ratio; on less off is +168 (+128 to +208)" in a.why
    assert a.why.endswith("in the metric's unit")
    assert "both on, beyond each alone, is " in both.why


@pytest.mark.thorough
@pytest.mark.parametrize("blocks", [3, 5, 10])
def test_effects_of_boots_of_which_some_are_0_are_imagined_in_one_of_twenty(blocks: int) -> None:
    simulations = [effects(with_zeros(seed, blocks), "ab") for seed in range(400)]
    called = np.mean(
        [[(effect.p_value or 0) <= 0.05 for effect in some] for some in simulations if some[0].ratio is None]
    )
    assert 0.03 <= called <= 0.06


def test_negative_numbers_have_differences_too() -> None:
    arms = {
        on: Arm(arm.name, {b: (v[0] - 100,) for b, v in arm.boots.items()})
        for on, arm in with_zeros(2, 5).items()
    }
    assert all(effect.ratio is None and effect.p_value is not None for effect in effects(arms, "ab"))


def test_differences_of_one_block_and_of_equal_boots_say_what_is_missing() -> None:
    effect = effects({(): Arm("base", {0: (0.0,)}), ("a",): Arm("a", {0: (5.0,)})}, "a")[0]
    assert (
        effect.why
        == "0 or less in 1 of 2 boots: there is no ratio; on less off is +5; one block: an interval needs 2 blocks"
    )
    equal = {(): Arm("base", {0: (0.0,), 1: (0.0,)}), ("a",): Arm("a", {0: (5.0,), 1: (5.0,)})}
    assert effects(equal, "a")[0].why.endswith("is +5 in the metric's unit; boots of a variant agree exactly")
