# SPDX-License-Identifier: GPL-2.0-or-later
import pytest

from lab.statistics.estimate import Arm
from lab.statistics.exact_counts import disagreement, exact_shift


def arm(name: str, *boots: float) -> Arm:
    return Arm(name, {block: (value, value + 1, value - 1) for block, value in enumerate(boots)})


BASE = [arm("base", 2000, 2000), arm("twin", 2000, 2000)]


def test_boots_that_agree_give_the_exact_ratio_widened_by_the_floor() -> None:
    shift = exact_shift(BASE, arm("new", 2020, 2020), floor=0.002)
    assert shift.ratio == 1.01
    assert [shift.low, shift.high] == pytest.approx([1.01 / 1.002, 1.01 * 1.002])
    assert shift.p_value is None
    assert shift.method == "instructions, compared exactly: 4 and 2 boots agree; floor ±0.20%"


def test_one_boot_of_the_base_does_not_show_that_boots_agree() -> None:
    shift = exact_shift([arm("base", 2000)], arm("new", 2020), floor=0.002)
    assert (shift.ratio, shift.low, shift.why) == (
        1.01,
        None,
        "one boot of the base: whether boots agree takes 2",
    )


def test_boots_that_do_not_agree_are_compared_as_others_are() -> None:
    base, new = [arm("base", 2000, 2001, 2000)], arm("new", 2020, 2020, 2021)
    shift = exact_shift(base, new, floor=0.002)
    assert shift.ratio == pytest.approx(1.01, rel=1e-3)
    assert shift.method.startswith("boots do not agree exactly; t-test")
    # The verdict asks about the interval that is shown: no regression has one that holds "no change".
    without = exact_shift(base, new, floor=0.0)
    assert (shift.low, shift.high) == (without.low, without.high)


@pytest.mark.parametrize("side", [Arm("new", {}), arm("new", float("nan")), arm("new", 0, 0)])
def test_what_is_no_count_has_no_ratio(side: Arm) -> None:
    shift = exact_shift(BASE, side, floor=0.002)
    assert (shift.ratio, shift.low) == (None, None)
    assert shift.why


def test_disagreement_names_arm_and_spread() -> None:
    assert disagreement(BASE[0]) == ""
    assert disagreement(arm("new", 2000, 2001)) == "new: 2 boots lie between 2000 and 2001 (0.0005 of it)"
    inner = Arm("new", {0: (1.0, 2.0, 3.0), 1: (1.5, 2.0, 3.0)})
    assert disagreement(inner) == "new: 2 boots agree in their median, not in every iteration"
    uneven = Arm("new", {0: (1.0,), 1: (1.0, 1.0)})
    assert disagreement(uneven) == "new: boots have 1 to 2 iterations"
