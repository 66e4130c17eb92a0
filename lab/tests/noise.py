# SPDX-License-Identifier: GPL-2.0-or-later
"""Shapes of noise between boots, for tests of error rates. Unit variance or near it, seeded by the caller."""

import numpy as np
from numpy.typing import NDArray

from lab.statistics.block_model import BlockLayout

Floats = NDArray[np.float64]


def noise(kind: str, shape: tuple[int, int], rng: np.random.Generator) -> Floats:
    """Return noise of boots in the order they run, shape (trials, boots)."""
    if kind == "normal":
        return rng.normal(size=shape)
    if kind == "heavy tails":
        return rng.standard_t(3, size=shape)
    if kind == "bimodal":
        return 0.3 * rng.normal(size=shape) + 2.5 * (rng.random(shape) < 0.2)
    steps = rng.normal(size=shape)
    for boot in range(1, shape[1]):
        steps[:, boot] = 0.8 * steps[:, boot - 1] + 0.6 * steps[:, boot]
    return steps


def experiments(kind: str, trials: int, blocks: int, arms: int, seed: int) -> Floats:
    """Return boots in random order within blocks, shape (trials, blocks, arms): arm 0 is the candidate."""
    rng = np.random.default_rng(seed)
    drawn = noise(kind, (trials, blocks * arms), rng).reshape(trials, blocks, arms)
    return np.take_along_axis(drawn, np.argsort(rng.random(drawn.shape), axis=2), axis=2)


def layout(blocks: int, arms: int) -> BlockLayout:
    """Return the layout of experiments(): the candidate, then base and twin, then other arms."""
    sides = [1, 0, 0, *range(2, arms - 1)][:arms]
    return BlockLayout(np.repeat(np.arange(blocks), arms), np.tile(np.array(sides, dtype=np.intp), blocks))
