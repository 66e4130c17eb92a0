# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles in which nothing moved but chance: counts of frames in a tree of calls, a boot a column.

Shapes: `even` boots draw from one profile; `restless` ones from shares that differ by 10 % a boot; in `subtrees` whole branches
do, by 5 %; `uneven` frames differ by 5 % typically, a few by 50 %; in `bursts` each tenth leaf is there in three boots of
ten only; `bimodal` boots have a branch that is 40 % larger in each second one; in `clumps` samples come four at a time.
"""

from collections.abc import Callable, Mapping
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
LEAVES, DEEPEST = 600, 12


def _branches(rng: np.random.Generator) -> Integers:
    """int64[frames, 2]: the stretches of leaves that frames span; each in its parent's."""
    stretches: set[tuple[int, int]] = set()
    waiting = [(0, LEAVES, 0)]
    while waiting:
        low, high, depth = waiting.pop()
        stretches.add((low, high))
        if high - low == 1:
            continue
        parts = high - low if depth > DEEPEST else int(rng.integers(1, 6))
        cuts = {low, high, (low + high) // 2, *rng.integers(low, high, parts).tolist()}
        edges = sorted(cuts)
        waiting += [(a, b, depth + 1) for a, b in pairwise(edges)]
    return np.array(sorted(stretches), np.int64)


def _restless(shares: Floats, branches: Integers, rng: np.random.Generator) -> Floats:
    return shares * rng.gamma(100.0, 0.01, shares.shape)


def _subtrees(shares: Floats, branches: Integers, rng: np.random.Generator) -> Floats:
    for low, high in branches[rng.random(len(branches)) < 0.5]:
        shares[:, low:high] *= np.exp(rng.normal(0, 0.05, (len(shares), 1)))
    return shares


def _uneven(shares: Floats, branches: Integers, rng: np.random.Generator) -> Floats:
    spread = np.exp(rng.normal(np.log(0.05), 1.2, LEAVES))
    return np.asarray(shares * np.exp(rng.normal(0, 1, shares.shape) * spread), dtype=float)


def _bursts(shares: Floats, branches: Integers, rng: np.random.Generator) -> Floats:
    there = np.where(rng.random(shares.shape) < 0.3, 1 / 0.3, 0.0)
    return np.where(rng.random(LEAVES) < 0.1, there, 1.0) * shares


def _bimodal(shares: Floats, branches: Integers, rng: np.random.Generator) -> Floats:
    width = branches[:, 1] - branches[:, 0]
    large = branches[(width > 20) & (width < 200)]
    low, high = large[rng.integers(len(large))]
    shares[rng.random(len(shares)) < 0.5, low:high] *= 1.4
    return shares


SHAPES: Mapping[str, Callable[[Floats, Integers, np.random.Generator], Floats]] = {
    "even": lambda shares, branches, rng: shares,
    "restless": _restless,
    "subtrees": _subtrees,
    "uneven": _uneven,
    "bursts": _bursts,
    "bimodal": _bimodal,
    "clumps": lambda shares, branches, rng: shares,
}


def null_page(rng: np.random.Generator, shape: str, samples: int, boots: int) -> tuple[Integers, Integers]:
    """Counts of some 1,500 frames, int64[frames, boots], and the boots' samples, which differ by 5 %."""
    branches = _branches(rng)
    shares = np.tile(rng.pareto(0.9, LEAVES) + 0.01, (boots, 1))
    shares = SHAPES[shape](shares, branches, rng)
    length = samples * np.exp(rng.normal(0, 0.05, (boots, 1)))
    clump = 4 if shape == "clumps" else 1
    drawn = clump * rng.poisson(shares / shares.sum(axis=1, keepdims=True) * length / clump)
    running = np.concatenate((np.zeros((1, boots), np.int64), np.cumsum(drawn.T, axis=0)))
    return running[branches[:, 1]] - running[branches[:, 0]], drawn.sum(axis=1)
