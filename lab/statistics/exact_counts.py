# SPDX-License-Identifier: GPL-2.0-or-later
"""Shifts under the instruction clock, where the boots of an arm should agree to the last instruction.

Then chance has no part in it and no test is needed. What is left is the floor: how much differently linked kernels
differ although nothing relevant changed. The interval is the ratio widened by it.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite

from lab.statistics.arms import Arm, Shift, boot_number
from lab.statistics.estimate import estimate

LEAST_BOOTS = 2


def exact_shift(base: Sequence[Arm], candidate: Arm, *, floor: float, level: float = 0.95) -> Shift:
    """Return the shift of counted instructions. floor: a fraction, such as 0.002. level: of estimate()'s interval.

    If all boots agree: ratio of the boots' medians, interval ratio / (1 + floor) to ratio * (1 + floor), no
    p-value. If they do not: estimate(), whose interval is also the one that the verdict asks about.
    """
    sides = [
        [values for arm in arms for values in arm.boots.values() if values] for arms in (base, [candidate])
    ]
    if any(not boots for boots in sides) or any(len(set(boots)) > 1 for boots in sides):
        shift = estimate(base, candidate, level=level)
        return replace(shift, method=f"boots do not agree exactly; {shift.method}" if shift.method else "")
    ours, theirs = boot_number(sides[0][0]), boot_number(sides[1][0])
    shift = Shift(len(sides[1]), ours, theirs, None, None, None, method="instructions, compared exactly")
    if not (ours > 0 and theirs > 0 and isfinite(theirs / ours) and theirs / ours > 0):
        return replace(
            shift, why="instructions of both sides must be above 0 and countable: there is no ratio"
        )
    ratio = theirs / ours
    shift = replace(shift, ratio=ratio)
    if len(sides[0]) < LEAST_BOOTS:
        return replace(shift, why=f"one boot of the base: whether boots agree takes {LEAST_BOOTS}")
    said = f"{shift.method}: {len(sides[0])} and {len(sides[1])} boots agree; floor ±{floor:.2%}"
    return replace(shift, low=ratio / (1 + floor), high=ratio * (1 + floor), method=said)


def disagreement(arm: Arm) -> str:
    """Say how far the boots of an arm, which should agree to the last instruction, are apart; "" if they agree."""
    boots = [values for _, values in sorted(arm.boots.items()) if values]
    if len(set(boots)) <= 1:
        return ""
    if len({len(values) for values in boots}) > 1:
        return f"{arm.name}: boots have {_range([len(values) for values in boots])} iterations"
    numbers = [boot_number(values) for values in boots]
    low, high = min(numbers), max(numbers)
    if low == high:
        return f"{arm.name}: {len(boots)} boots agree in their median, not in every iteration"
    share = f" ({high / low - 1:.2g} of it)" if low > 0 else ""
    return f"{arm.name}: {len(boots)} boots lie between {low:.15g} and {high:.15g}{share}"


def _range(numbers: Sequence[int]) -> str:
    return f"{min(numbers)} to {max(numbers)}"
