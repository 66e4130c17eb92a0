# SPDX-License-Identifier: GPL-2.0-or-later
"""Find which of many counters moved between two kernels: one number a boot, in the linear model of blocks.

Counters are not metrics: some are 0 in most boots, and changes of an amount in use may be below 0. Where all are positive their
logarithms are compared, which gives a ratio with its interval; else their signed roots, on which a count varies by about
the same whatever its size, and which give only a p-value. Since such roots are far from normal, it is never smaller than
the chance of the rarest order of the boots.
"""

from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

from lab.profiles.analysis.share_shifts import LEAST_FREEDOM, adjusted
from lab.statistics.block_model import BASE, CANDIDATE, ROUNDING, BlockLayout, Floats, guarded, pooled
from lab.statistics.estimate import LEAST_BLOCKS
from lab.statistics.rank_test import GUARD

# q is doubled: counters go together, and of a hundred a few have boots that agree by luck (docs/design/profiles.md has the rates).
CAUTION = 2
MOST_LOG = 700.0


@dataclass(frozen=True, eq=False)
class CounterShifts:
    """Of each counter, float64[counters]: ratio of candidate over base with its 95 % interval, p and q; NaN: unknown."""

    ratio: Floats
    low: Floats
    high: Floats
    p: Floats
    q: Floats


def counter_shifts(values: Floats, layout: BlockLayout) -> CounterShifts:
    """Compare arm 1 with arm 0; the others only tell how boots vary. q: after Benjamini and Hochberg over all counters.

    values: float64[counters, boots]; NaN where a boot lacks a counter, which is then compared without this boot.
    """
    columns = {name: np.full(len(values), np.nan) for name in ("ratio", "low", "high", "p")}
    known = np.isfinite(values)
    masks, which = np.unique(known, axis=0, return_inverse=True)
    for place, mask in enumerate(masks):
        rows = np.flatnonzero(which.ravel() == place)
        part = layout.only(mask)
        if _comparable(part):
            for name, estimated in _of_one_layout(values[np.ix_(rows, mask)], part).items():
                columns[name][rows] = estimated
    return CounterShifts(**columns, q=adjusted(columns["p"], CAUTION))


def _comparable(layout: BlockLayout) -> bool:
    both = all((layout.arm == side).any() for side in (BASE, CANDIDATE))
    return both and layout.contrasts.shape[0] >= LEAST_BLOCKS and layout.freedom >= LEAST_FREEDOM


def _of_one_layout(values: Floats, layout: BlockLayout) -> dict[str, Floats]:
    positive = np.all(values > 0, axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = np.where(positive, np.log(values), np.sign(values) * np.sqrt(np.abs(values)))
    fit, _ = guarded(scaled, layout, alpha=GUARD)
    half, positive = fit.half_width(0.95), positive[:, 0]
    p = fit.p_value()
    same = _agreeing(scaled, layout)
    p = np.where(same & (np.abs(fit.shift) <= ROUNDING * np.maximum(np.abs(scaled).max(axis=1), 1.0)), 1.0, p)
    p = np.where(same | ~positive, np.maximum(p, _luck(layout)), p)
    ratio, low, high = (
        np.where(positive, np.exp(np.clip(fit.shift + side * half, -MOST_LOG, MOST_LOG)), np.nan)
        for side in (0, -1, 1)
    )
    return {"ratio": ratio, "low": low, "high": high, "p": p}


def _agreeing(scaled: Floats, layout: BlockLayout) -> NDArray[np.bool_]:
    """bool[counters]: boots of each side agree exactly, so that there is no chance to be seen."""
    two = layout.arm <= CANDIDATE
    sd = pooled(scaled[:, two], layout.only(two)).sd
    return np.asarray(sd <= ROUNDING * np.maximum(np.abs(scaled).max(axis=1), 1.0), dtype=bool)


def _luck(layout: BlockLayout) -> float:
    """Return the chance that exactly the candidate's boots are the odd ones out, or exactly the base's if as many."""
    ours, theirs = (int((layout.arm == side).sum()) for side in (CANDIDATE, BASE))
    return (2 if ours == theirs else 1) / comb(ours + theirs, ours)
