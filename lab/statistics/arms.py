# SPDX-License-Identifier: GPL-2.0-or-later
"""Input and output of the analysis: the boots of an arm, and the shift between two arms.

An arm is one variant's boots in an experiment's blocks. A boot is the unit of replication: its iterations
share its memory layout and its luck, so it counts as one number.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp

import numpy as np

from lab.statistics.block_model import BlockLayout
from lab.statistics.zeros import Ranked

MOST_LOG = 700.0


@dataclass(frozen=True, slots=True)
class Arm:
    """One variant's values of one metric: by block, a boot's iterations without warm-up, at least one."""

    name: str
    boots: Mapping[int, tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class Shift:
    """Candidate over base, as a ratio: 1.02 is +2 %.

    boots: the candidate's with a base boot in their block. A field without a value is None; `why` gives the reason.
    base_median, median: of the boots' numbers, metric's unit. p_value: two-sided, of ratio 1.
    effect: log ratio in standard deviations between boots of a block. ranked: in place of a ratio, where some boots are 0.
    """

    boots: int
    base_median: float | None
    median: float | None
    ratio: float | None
    low: float | None
    high: float | None
    p_value: float | None = None
    effect: float | None = None
    freedom: float | None = None
    method: str = ""
    why: str = ""
    ranked: Ranked | None = None


@dataclass(frozen=True, slots=True)
class BootTable:
    """Boot numbers of several arms and where they stand; values: shape (boots,), metric's unit."""

    values: np.ndarray[tuple[int], np.dtype[np.float64]]
    layout: BlockLayout


def boot_number(values: Sequence[float], quantile: float = 0.5) -> float:
    """Return the one number that represents a boot: the quantile of its iterations, at least one."""
    with np.errstate(invalid="ignore", over="ignore"):
        return float(np.quantile(np.asarray(values, dtype=float), quantile))


def ratio_of(log_ratio: float) -> float:
    """Return the ratio, kept within what a float can hold in either direction."""
    return exp(min(max(log_ratio, -MOST_LOG), MOST_LOG))


def table(sides: Sequence[Sequence[Arm]], quantile: float) -> BootTable:
    """Put arms into one table. sides[i]: the arms that count as arm i (base and its twin are both 0)."""
    rows = [
        (boot_number(iterations, quantile), block, number)
        for number, arms in enumerate(sides)
        for arm in arms
        for block, iterations in arm.boots.items()
        if iterations
    ]
    values, block, number = ([row[i] for row in rows] for i in range(3))
    return BootTable(
        np.array(values, dtype=float),
        BlockLayout(np.array(block, dtype=np.intp), np.array(number, dtype=np.intp)),
    )


def shared_blocks(base: Sequence[Arm], candidate: Arm) -> list[int]:
    """Return the blocks that hold a boot of both sides."""
    held = {block for arm in base for block, iterations in arm.boots.items() if iterations}
    return sorted(block for block, iterations in candidate.boots.items() if iterations and block in held)
