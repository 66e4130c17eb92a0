# SPDX-License-Identifier: GPL-2.0-or-later
"""Shapes of boots under which nothing changed, for `bench.stats`: many that our methods do not assume.

Each shape draws whole experiments: boots in metric's units, shape (trials, blocks, 3), of the base, its twin and a
candidate whose location is the base's. Boots run block by block in random order within each block, so what depends on
time (drift, memory, every third boot) reaches all three arms alike. Equal location means, by the quantity that
docs/verdicts.md says a verdict is about: a boot of the candidate is as often above a boot of the base as below it. Where
candidate and base have different shapes, each is drawn so that this holds.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rng = np.random.Generator
ARMS = 3
CANDIDATE = 2
# Standard deviation of logs between boots where a shape has one: 2 %.
SD = 0.02
# The shift to find: +2 % where boots are never 0, three times as much where some are.
LARGER, LARGER_OF_ZEROS = 1.02, 3.0
# Of the logs of exp(normal) less this, half lie above a normal's: P(X > Y) = 1/2 for X lognormal (sigma 1), Y normal.
SKEW_SHIFT = 1.2292


@dataclass(frozen=True, slots=True)
class Shape:
    """A null: its name and what draws it; larger: what the candidate is multiplied by to see whether that is found.

    coarse: so few different values that no test can use its level up; fewer alarms than the goal are right there.
    """

    name: str
    draw: Callable[[int, int, Rng], Floats]
    larger: float = LARGER
    coarse: bool = False


def in_time(noise: Callable[[int, int, Rng], Floats]) -> Callable[[int, int, Rng], Floats]:
    """Return experiments whose boots take the numbers that noise(trials, boots) gives in time, in random order."""

    def draw(trials: int, blocks: int, rng: Rng) -> Floats:
        drawn = noise(trials, ARMS * blocks, rng).reshape(trials, blocks, ARMS)
        order = np.argsort(rng.random(drawn.shape), axis=2)
        return np.asarray(np.exp(SD * np.take_along_axis(drawn, order, axis=2)), dtype=float)

    return draw


def of_candidate(other: Callable[[Floats, Rng], Floats]) -> Callable[[int, int, Rng], Floats]:
    """Return experiments of normal boots whose candidate's are drawn again from its own normal ones."""

    def draw(trials: int, blocks: int, rng: Rng) -> Floats:
        drawn = rng.normal(size=(trials, blocks, ARMS))
        drawn[:, :, CANDIDATE] = other(drawn[:, :, CANDIDATE], rng)
        return np.asarray(np.exp(SD * drawn), dtype=float)

    return draw


def memory(trials: int, boots: int, rng: Rng, keeps: float = 0.8) -> Floats:
    """AR(1): each boot keeps four fifths of what the one before was off by."""
    walk = rng.normal(size=(trials, boots))
    for boot in range(1, boots):
        walk[:, boot] = keeps * walk[:, boot - 1] + np.sqrt(1 - keeps**2) * walk[:, boot]
    return walk


def modes(trials: int, boots: int, rng: Rng, share: float) -> Floats:
    """A share of the boots is 5 of the others' deviations slower."""
    return np.asarray(rng.normal(size=(trials, boots)) + 5.0 * (rng.random((trials, boots)) < share))


def _contaminated(trials: int, boots: int, rng: Rng) -> Floats:
    """One boot in ten from a Cauchy distribution, cut where a boot would take a thousand times as long."""
    wild = np.clip(3 * rng.standard_cauchy((trials, boots)), -300, 300)
    return np.where(rng.random((trials, boots)) < 0.1, wild, rng.normal(size=(trials, boots)))


def _drift(trials: int, boots: int, rng: Rng) -> Floats:
    """From the first to the last boot by 10 standard deviations."""
    return np.asarray(rng.normal(size=(trials, boots)) + np.linspace(0, 10, boots))


def _every_third(trials: int, boots: int, rng: Rng) -> Floats:
    """Every third boot in time is slower by 5 standard deviations: one in each block."""
    return np.asarray(rng.normal(size=(trials, boots)) + 5.0 * (np.arange(boots) % 3 == 0))


def _rare_jumps(trials: int, boots: int, rng: Rng) -> Floats:
    """Boots agree to the last digit, but for one in twenty."""
    return np.where(rng.random((trials, boots)) < 0.05, 5.0, 0.0)


def _zeros(share: float) -> Callable[[int, int, Rng], Floats]:
    """Boots that are exactly 0 with that chance, and else lognormal by 30 %."""

    def draw(trials: int, blocks: int, rng: Rng) -> Floats:
        shape = (trials, blocks, ARMS)
        return np.where(rng.random(shape) < share, 0.0, 100 * np.exp(0.3 * rng.normal(size=shape)))

    return draw


def _counts(mean: float, least: float) -> Callable[[int, int, Rng], Floats]:
    return lambda trials, blocks, rng: least + rng.poisson(mean, size=(trials, blocks, ARMS)).astype(float)


def _two_clusters(own: Floats, rng: Rng) -> Floats:
    """Two clusters, 5 standard deviations apart, around the base's middle."""
    return np.asarray(own + 2.5 * rng.choice([-1.0, 1.0], size=own.shape), dtype=float)


SHAPES: tuple[Shape, ...] = (
    Shape("normal", in_time(lambda trials, boots, rng: rng.normal(size=(trials, boots)))),
    Shape("heavy tails (t, 3)", in_time(lambda trials, boots, rng: rng.standard_t(3, size=(trials, boots)))),
    Shape("1 in 10 Cauchy", in_time(_contaminated)),
    Shape("lognormal", in_time(lambda trials, boots, rng: np.exp(rng.normal(size=(trials, boots))))),
    Shape("bimodal 1:4", in_time(lambda trials, boots, rng: modes(trials, boots, rng, 0.2))),
    Shape("bimodal 1:1", in_time(lambda trials, boots, rng: modes(trials, boots, rng, 0.5))),
    Shape("drift", in_time(_drift)),
    Shape("AR(1), 0.8", in_time(memory)),
    Shape("every third boot slow", in_time(_every_third)),
    Shape(
        "1 in 10 an outlier",
        in_time(
            lambda trials, boots, rng: (
                rng.normal(size=(trials, boots)) + 20.0 * (rng.random((trials, boots)) < 0.1)
            )
        ),
    ),
    Shape("constant, rare jumps", in_time(_rare_jumps), coarse=True),
    Shape("integers 1, 2, 3, …", _counts(2.0, 1.0), LARGER_OF_ZEROS),
    Shape("integers 0, 1, 2, …", _counts(3.0, 0.0), LARGER_OF_ZEROS),
    Shape("5 % zeros", _zeros(0.05), LARGER_OF_ZEROS),
    Shape("30 % zeros", _zeros(0.3), LARGER_OF_ZEROS),
    Shape("70 % zeros", _zeros(0.7), LARGER_OF_ZEROS, coarse=True),
    Shape("candidate's variance ×4", of_candidate(lambda own, _: 2 * own)),
    Shape("candidate's variance ×16", of_candidate(lambda own, _: 4 * own)),
    Shape("candidate's variance ×1/4", of_candidate(lambda own, _: own / 2)),
    Shape("candidate's variance ×1/16", of_candidate(lambda own, _: own / 4)),
    Shape("candidate bimodal 1:1", of_candidate(_two_clusters)),
    Shape("candidate lognormal", of_candidate(lambda own, _: np.exp(own) - SKEW_SHIFT)),
)
