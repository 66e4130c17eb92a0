# SPDX-License-Identifier: GPL-2.0-or-later
"""Estimate the shift of one metric between two arms, with interval and p-value. Numbers in, numbers out.

A boot counts as one number, the median (or another quantile) of its iterations. Shifts are between logs of boots
of one block. How chance is judged depends on how many boots there are (docs/verdicts.md has the error rates):

- few boots of both sides (below RANK_BOOTS): the linear model of the blocks, Student's t, with the chance of
  all arms' boots pooled. If the candidate's differences vary clearly more (F test, 1 %): its own.
- more: ranks within blocks, which outliers cannot move.
- some boots are 0: ranks of the values, however many there are (zeros.py).
- all boots of each side equal: the ratio is exact, once there are too many possible orders for luck.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import comb, isinf, prod

import numpy as np

from lab.statistics.arms import Arm, BootTable, Shift, boot_number, ratio_of, shared_blocks, table
from lab.statistics.block_model import BASE, CANDIDATE, ROUNDING, Floats, cautious, guarded, pooled
from lab.statistics.rank_test import GUARD, RANK_BOOTS, rank_shift
from lab.statistics.zeros import judge_ranks

__all__ = ["LEAST_BLOCKS", "Arm", "Shift", "boot_number", "estimate"]

LEAST_BLOCKS = 2
NOTHING = Shift(0, None, None, None, None, None)
EQUAL = Shift(0, None, None, 1.0, 1.0, 1.0, p_value=1.0, effect=0.0)


def estimate(
    base: Sequence[Arm],
    candidate: Arm,
    others: Sequence[Arm] = (),
    *,
    quantile: float = 0.5,
    level: float = 0.95,
    looks: bool = False,
) -> Shift:
    """Return the shift of the candidate against the base (one arm, or base and its A/A twin).

    others: the experiment's other arms; their boots tell how large chance is. looks: whether this is one of several
    looks at unfinished data. Where data allow no estimate, the shift has no ratio or interval and says why; nothing is
    raised, and nothing is random.
    """
    boots = table([base, [candidate], *([arm] for arm in others)], quantile)
    shared = shared_blocks(base, candidate)
    base_median, median = (_median(boots.values[boots.layout.arm == side]) for side in (BASE, CANDIDATE))
    shift = _judged(boots, shared, level, looks)
    return replace(shift, boots=len(shared), base_median=base_median, median=median)


def _judged(boots: BootTable, shared: Sequence[int], level: float, looks: bool) -> Shift:
    """Choose the method the boots allow."""
    why = _unusable(boots, shared)
    if why:
        return replace(NOTHING, why=why)
    two = _of_two(boots, shared)
    if not np.any(two.values):
        return replace(EQUAL, method="all boots are 0")
    zeros = not np.all(two.values)
    if len(shared) < LEAST_BLOCKS:
        ratio = None if zeros else ratio_of(float(np.log(two.values) @ two.layout.contrasts[0]))
        return replace(
            NOTHING, ratio=ratio, why=f"an interval needs {LEAST_BLOCKS} blocks, both sides share 1"
        )
    if zeros:
        return _by_order(two, level, looks)
    return _exact(two, level) or _ranked(two, level) or _linear(boots, level, looks)


def _unusable(boots: BootTable, shared: Sequence[int]) -> str:
    """Say why there is no shift whatever the method, or nothing."""
    values, arm = boots.values, boots.layout.arm
    for side, name in ((BASE, "the base"), (CANDIDATE, "the candidate")):
        if not np.any(arm == side):
            return f"no valid boot of {name}"
    if not shared:
        return "no boot of both sides in one block"
    sides = values[arm <= CANDIDATE]
    if not np.all(np.isfinite(sides)):
        return f"{np.count_nonzero(~np.isfinite(sides))} of {sides.size} boots gave no finite number"
    if np.any(sides < 0):
        return f"{np.count_nonzero(sides < 0)} of {sides.size} boots are below 0: there is no ratio"
    return ""


def _of_two(boots: BootTable, shared: Sequence[int]) -> BootTable:
    """Return only base and candidate, only the blocks both are in."""
    keep = np.isin(boots.layout.block, shared) & (boots.layout.arm <= CANDIDATE)
    return BootTable(boots.values[keep], boots.layout.only(keep))


def _exact(two: BootTable, level: float) -> Shift | None:
    """Judge boots that differ only by side and by block: by counting the possible orders.

    Such boots show no variance to test against. But if the build had no influence, any boots could have been
    the odd ones out: any of all boots if blocks do not differ, else any of each block.
    """
    logs = np.log(two.values)
    fit = pooled(logs, two.layout)
    if float(fit.sd) > ROUNDING:
        return None
    ratio = ratio_of(float(fit.shift))
    if abs(float(fit.shift)) <= ROUNDING:
        return replace(EQUAL, method="all boots agree exactly")
    p_value = _luck(two)
    method = "boots of a side agree exactly; the p-value counts the orders in which they could have come"
    if p_value > 1 - level:
        blocks = two.layout.contrasts.shape[0]
        why = f"boots of a side agree exactly, but {blocks} blocks are too few to rule out chance"
        return replace(NOTHING, ratio=ratio, p_value=p_value, method=method, why=why)
    return replace(NOTHING, ratio=ratio, low=ratio, high=ratio, p_value=p_value, method=method)


def _luck(two: BootTable) -> float:
    """Return the chance that exactly the candidate's boots are the odd ones, or exactly the base's if as many."""
    ours = two.layout.arm == CANDIDATE
    count = int(np.count_nonzero(ours))
    if np.ptp(two.values[ours]) == 0 and np.ptp(two.values[~ours]) == 0:
        orders = comb(ours.size, count)
    else:
        orders = prod(int(size) for size in np.bincount(two.layout.block) if size)
    return (2 if 2 * count == ours.size else 1) / orders


def _ranked(two: BootTable, level: float) -> Shift | None:
    """Judge by ranks; None if too few boots for ranks to bound the shift."""
    blocks = two.layout.contrasts.shape[0]
    if two.values.size < RANK_BOOTS:
        return None
    logs = np.log(two.values)
    ranked = rank_shift(logs, two.layout, level=level)
    if isinf(ranked.low) or isinf(ranked.high):
        return None
    method = f"rank test in {blocks} randomised blocks, {_chance(ranked.own_variance)}"
    return replace(
        NOTHING,
        ratio=ratio_of(ranked.shift),
        low=ratio_of(ranked.low),
        high=ratio_of(ranked.high),
        p_value=ranked.p_value,
        effect=ranked.shift / float(pooled(logs, two.layout).sd),
        freedom=ranked.freedom,
        method=method,
    )


def _by_order(two: BootTable, level: float, looks: bool) -> Shift:
    """Judge by the order of values, where some are 0."""
    verdict = judge_ranks(two.values, two.layout, level=level, looks=looks)
    blocks = two.layout.contrasts.shape[0]
    said = f"0 in {verdict.ranked.zeros} of {verdict.ranked.boots} boots: there is no ratio"
    method = f"some boots are 0: ranks of the values in {blocks} blocks"
    return replace(
        NOTHING,
        p_value=verdict.p_value,
        freedom=verdict.freedom,
        method=method,
        why=said,
        ranked=verdict.ranked,
    )


def _linear(boots: BootTable, level: float, looks: bool) -> Shift:
    """Judge by the linear model of all arms' boots."""
    positive = np.isfinite(boots.values) & (boots.values > 0)
    # A side's boot may be 0 in a block that the other side is not in.
    usable = (boots.layout.arm <= CANDIDATE) & positive
    for arm in np.unique(boots.layout.arm[boots.layout.arm > CANDIDATE]):
        whole = positive[boots.layout.arm == arm].all()
        usable |= (boots.layout.arm == arm) & whole
    layout = boots.layout.only(usable)
    logs = np.log(boots.values[usable])
    fit, alone = guarded(logs, layout, alpha=GUARD)
    if looks:
        fit = cautious(logs, layout)
        alone = fit.freedom < layout.freedom
    shift, half, sd = float(fit.shift), float(fit.half_width(level)), float(fit.sd)
    blocks = layout.contrasts.shape[0]
    method = f"t-test in {blocks} randomised blocks, {_chance(bool(alone))}"
    return replace(
        NOTHING,
        ratio=ratio_of(shift),
        low=ratio_of(shift - half),
        high=ratio_of(shift + half),
        p_value=float(fit.p_value()),
        effect=shift / sd if sd else None,
        freedom=float(fit.freedom),
        method=method,
    )


def _chance(own: bool) -> str:
    return "own variance" if own else "pooled variance"


def _median(values: Floats) -> float | None:
    return float(np.median(values)) if values.size and np.all(np.isfinite(values)) else None
