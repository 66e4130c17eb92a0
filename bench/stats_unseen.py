# SPDX-License-Identifier: GPL-2.0-or-later
"""Shapes of boots that no rule in lab/statistics was developed with: they check that a change there is not fitted to its examples.

They are written as those of bench/stats_shapes.py are, and equal location means the same. Look at the figures, but do not
tune a constant to them: a shape that was tuned to belongs into SHAPES, and a new one takes its place here.
"""

import numpy as np

from bench.stats_shapes import (
    ARMS,
    CANDIDATE,
    LARGER_OF_ZEROS,
    SD,
    Floats,
    Rng,
    Shape,
    in_time,
    of_candidate,
)

# P(exp(1.2 X) - this > Y) = 1/2 for normal X and Y.
SKEWED_NOISIER = 1.2700


def _three_clusters(trials: int, boots: int, rng: Rng) -> Floats:
    """Three equally frequent clusters, 4 standard deviations from one to the next."""
    return np.asarray(rng.normal(size=(trials, boots)) + 4.0 * rng.integers(3, size=(trials, boots)))


def _outliers(trials: int, boots: int, rng: Rng) -> Floats:
    """One boot in twenty from a normal with ten times the standard deviation."""
    return np.asarray(
        rng.normal(size=(trials, boots)) * np.where(rng.random((trials, boots)) < 0.05, 10.0, 1.0)
    )


def _within_blocks(trials: int, boots: int, rng: Rng) -> Floats:
    """Within each block by 4 standard deviations up from its first boot to its last, then back."""
    return np.asarray(rng.normal(size=(trials, boots)) + 4.0 * (np.arange(boots) % ARMS) / (ARMS - 1))


def _random_walk(trials: int, boots: int, rng: Rng) -> Floats:
    return np.asarray(np.cumsum(rng.normal(size=(trials, boots)), axis=1))


def _noisier_with_time(trials: int, boots: int, rng: Rng) -> Floats:
    """The last boot differs four times as much as the first, from any cause that all arms share."""
    return np.asarray(rng.normal(size=(trials, boots)) * np.linspace(1, 4, boots))


def _skewed_and_noisier(own: Floats, _: Rng) -> Floats:
    return np.asarray(np.exp(1.2 * own) - SKEWED_NOISIER, dtype=float)


def _three_of_its_own(own: Floats, rng: Rng) -> Floats:
    """Three clusters around the base's middle."""
    return np.asarray(own + 4.0 * rng.integers(-1, 2, size=own.shape), dtype=float)


def _heavier(own: Floats, rng: Rng) -> Floats:
    return np.asarray(rng.standard_t(2, size=own.shape), dtype=float)


def _sometimes_wild(own: Floats, rng: Rng) -> Floats:
    return np.asarray(own * np.where(rng.random(own.shape) < 0.2, 10.0, 1.0), dtype=float)


def _noisier_base(trials: int, blocks: int, rng: Rng) -> Floats:
    """Boots of heavy tails, the candidate's a third as wide as the base's."""
    drawn = rng.standard_t(4, size=(trials, blocks, ARMS))
    drawn[:, :, CANDIDATE] /= 3
    return np.asarray(np.exp(SD * drawn), dtype=float)


def _noisier_counts(trials: int, blocks: int, rng: Rng) -> Floats:
    """Counts with a mean of 4; a tenth of the boots count ten times as many."""
    shape = (trials, blocks, ARMS)
    return rng.poisson(4.0 * np.where(rng.random(shape) < 0.1, 10.0, 1.0)).astype(float)


UNSEEN: tuple[Shape, ...] = (
    Shape("heavy tails (t, 2)", in_time(lambda trials, boots, rng: rng.standard_t(2, size=(trials, boots)))),
    Shape("three clusters", in_time(_three_clusters)),
    Shape("5 % outliers, 10 times as wide", in_time(_outliers)),
    Shape("drift within each block", in_time(_within_blocks)),
    Shape("random walk", in_time(_random_walk)),
    Shape("noise grows with time", in_time(_noisier_with_time)),
    Shape("uniform", in_time(lambda trials, boots, rng: rng.uniform(-1.7, 1.7, size=(trials, boots)))),
    Shape("counts with bursts", _noisier_counts, LARGER_OF_ZEROS),
    Shape("candidate's variance ×9", of_candidate(lambda own, _: 3 * own)),
    Shape("candidate's variance ×64", of_candidate(lambda own, _: 8 * own)),
    Shape("base's variance ×9, t 4", _noisier_base),
    Shape("candidate skewed and noisier", of_candidate(_skewed_and_noisier)),
    Shape("candidate in three clusters", of_candidate(_three_of_its_own)),
    Shape("candidate of t 2", of_candidate(_heavier)),
    Shape("candidate with 20 % wild boots", of_candidate(_sometimes_wild)),
)
