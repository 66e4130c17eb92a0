# SPDX-License-Identifier: GPL-2.0-or-later
"""Sequential analysis for `boots = "auto"`: when to look, which level to spend, and what boots can detect.

Looking six times and stopping at the first p <= 5 % raises false alarms to 16 %. So each look spends only a part:
SPENT × the square of the share of the boots. Looks at few blocks cannot tell a noisy candidate, or one whose few
boots happen to lie in one of two clusters, from a shifted one; they are judged by their own variance too, and hardly
spend anything. Later looks find more in turn. A cell is decided when its verdict at the look's level is anything but
inconclusive; being called unchanged spends nothing, since it cannot be a false alarm.

The bounds assume that looks are correlated as sums of normal values are. That is only nearly true of
Student's t on few boots, then on ranks: spending 4.5 % gave 3.9 to 7.0 % false alarms in simulation, so SPENT is less.
Sources: Lan & DeMets, Biometrika 70(3), 1983; Kim & DeMets, Biometrika 74(1), 1987 (powers of the share).
"""

from functools import lru_cache
from math import exp, sqrt

import numpy as np
import scipy

from lab.statistics.block_model import Floats
from lab.statistics.rank_test import RANK_BOOTS, freedom_of

# Blocks after which verdicts are taken; the last is the most one pays for.
LOOKS = (3, 4, 6, 9, 13, 20)
ALPHA = 0.05
SPENT = 0.036
POWER = 0.8
# Points of the density that goes from look to look, and how many standard deviations it reaches.
POINTS, REACH = 1201, 6.0


def next_blocks(done: int) -> int | None:
    """Return how many blocks the next look takes, None after the last."""
    return next((look for look in LOOKS if look > done), None)


def level_at(blocks: int) -> float:
    """Return the p-value a shift must not exceed to be called after so many blocks.

    Between looks (an experiment was interrupted) it is that of the previous look; before the first, that of the first.
    """
    reached = sum(look <= blocks for look in LOOKS)
    return nominal_levels(LOOKS)[max(reached - 1, 0)]


def spent(share: float, alpha: float = SPENT) -> float:
    """Return the rate of false alarms allowed so far; share: of the most boots, 0 to 1."""
    return alpha * share**2


@lru_cache
def nominal_levels(looks: tuple[int, ...], alpha: float = SPENT) -> tuple[float, ...]:
    """Return by look the two-sided p-value whose use spends what the spending function allows.

    The density of the sum of all boots so far, in experiments not yet stopped, goes from look to look by
    convolution; each look's bound cuts off the tails it may spend. Source: Armitage, McPherson & Rowe,
    J. R. Stat. Soc. A 132(2), 1969.
    """
    shares = [look / looks[-1] for look in looks]
    points = np.linspace(-REACH, REACH, POINTS)
    step = float(points[1] - points[0])
    density = scipy.stats.norm.pdf(points, scale=sqrt(shares[0]))
    before, levels = 0.0, []
    for index, share in enumerate(shares):
        allowed, before = spent(share, alpha) - before, spent(share, alpha)
        bound = _bound(points, density * step, allowed)
        levels.append(float(2 * scipy.stats.norm.sf(bound / sqrt(share))))
        if index + 1 < len(shares):
            going_on = np.where(np.abs(points) < bound, density, 0.0)
            move = scipy.stats.norm.pdf(
                points[:, None] - points[None, :], scale=sqrt(shares[index + 1] - share)
            )
            density = move @ going_on * step
    return tuple(levels)


def _bound(points: Floats, weights: Floats, allowed: float) -> float:
    """Return the bound beyond which the `allowed` weight lies, both sides together."""
    upper = points[points >= 0]
    beyond = 2 * np.cumsum(weights[points >= 0][::-1])[::-1] - weights[points >= 0]
    return float(np.interp(-allowed, -beyond, upper))


def detectable(sd: float, boots: int, arms: int) -> float | None:
    """Return the smallest relative change found with 80 % power, such as 0.02; None if no boots can.

    sd: between boots of a block, of logs (about relative). arms: all of the experiment with base and twin.
    Normal noise is assumed; without a twin (two arms) the base has but one boot a block.
    """
    base_arms = 2 if arms > 2 else 1
    freedom = _freedom(boots, arms, base_arms)
    if boots < 2 or arms < 2 or freedom < 1:
        return None
    error = sd * sqrt((1 + 1 / base_arms) / boots)
    bound = float(scipy.stats.t.isf(ALPHA / 2, freedom))

    def lacking(shift: float) -> float:
        return float(scipy.stats.nct.sf(bound, freedom, shift)) - POWER

    return exp(error * float(scipy.optimize.brentq(lacking, 0.01, 50 + 10 * bound))) - 1


def _freedom(boots: int, arms: int, base_arms: int) -> float:
    """Return the degrees of freedom estimate() will have with no boot missing."""
    if boots * (1 + base_arms) < RANK_BOOTS:
        return boots * (arms - 1) - (arms - base_arms)
    return freedom_of(boots, base_arms)
