# SPDX-License-Identifier: GPL-2.0-or-later
"""Whatever the database holds, there is a verdict and never a traceback."""

from math import isfinite

from hypothesis import example, given, settings
from hypothesis import strategies as st

from lab.statistics.arms import Arm, Shift
from lab.statistics.estimate import estimate
from lab.statistics.exact_counts import disagreement, exact_shift
from lab.statistics.iterations import trend_left
from lab.statistics.switch_effects import effects
from lab.statistics.verdict import judge

values = st.one_of(
    st.sampled_from([0.0, 1.0, 1.0, 1.0, 2.0, 100.0, -1.0, float("nan"), float("inf"), 1e-300, 1e300]),
    st.floats(min_value=90, max_value=110),
)
good = st.floats(min_value=1e-6, max_value=1e9)


def arms(numbers: st.SearchStrategy[float]) -> st.SearchStrategy[Arm]:
    boots = st.dictionaries(st.integers(0, 8), st.lists(numbers, max_size=3).map(tuple), max_size=9)
    return st.builds(Arm, st.just("arm"), boots)


def sound(shift: Shift) -> None:
    """A shift has a whole interval or none, around its ratio, and says why if it has none."""
    if shift.low is None or shift.high is None or shift.ratio is None:
        assert shift.low is None
        assert shift.why
    else:
        assert shift.low <= shift.ratio * (1 + 1e-9)
        assert shift.ratio <= shift.high * (1 + 1e-9)
        assert shift.method
    assert shift.p_value is None or 0 <= shift.p_value <= 1


@settings(max_examples=80, deadline=None)
@given(
    st.lists(arms(values) | arms(good), max_size=2),
    arms(values) | arms(good),
    st.lists(arms(values), max_size=2),
)
def test_any_boots_have_a_verdict(base: list[Arm], candidate: Arm, others: list[Arm]) -> None:
    for shift in (estimate(base, candidate, others), exact_shift(base, candidate, floor=0.002)):
        sound(shift)
        verdict = judge(shift, better="lower", margin=0.02, floor=0.001, q_value=shift.p_value)
        assert verdict.word != "inconclusive" or verdict.reason
        assert verdict.boots_needed is None or verdict.boots_needed >= 1


@settings(max_examples=30, deadline=None)
@given(arms(values), arms(good), arms(good), arms(values))
def test_any_boots_have_effects(first: Arm, second: Arm, third: Arm, control: Arm) -> None:
    estimates = effects({(): first, ("a",): second, ("b", "a"): third}, "ab", controls=[control])
    assert [effect.switches for effect in estimates] == [("a",), ("b",), ("a", "b")]
    assert all(effect.why or effect.low is not None for effect in estimates)


@settings(max_examples=30, deadline=None)
@given(arms(values) | arms(good))
@example(Arm("arm", {0: (0.0, 1.0, 1.0), 1: (0.0, 1.0, 1.0), 2: (0.0, 1.0, 1e300)}))
def test_any_iterations_have_an_answer(arm: Arm) -> None:
    boots = list(arm.boots.values())
    trend = trend_left(boots)
    assert trend is None or isfinite(trend.slope)
    assert disagreement(arm) is not None


def test_ratios_beyond_all_bounds_are_still_numbers() -> None:
    base = [Arm("base", {0: (1e-300,), 1: (1e300,), 2: (1.0,)})]
    shift = estimate(base, Arm("new", {0: (1e300,), 1: (1e-300,), 2: (5.0,)}))
    assert judge(shift, better="lower", margin=0.0).word == "inconclusive"
    assert exact_shift([Arm("b", {0: (1e-300,), 1: (1e-300,)})], Arm("n", {0: (1e300,)}), floor=0.002).why
