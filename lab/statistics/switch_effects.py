# SPDX-License-Identifier: GPL-2.0-or-later
"""Estimate the main effects and pairwise interactions of switches in a factorial experiment, as ratios.

Model: log of a boot's number = block + sum of (effect × ±½) over switches + sum of (interaction × ±½ × ±½) over
pairs + noise. So a main effect is the log ratio of on to off, averaged over the other switches' settings, and an
interaction how much more two switches do together than each alone (a difference of differences).
Pairs that were not run in all four settings have no interaction in the model: where a design prunes them,
main effects hold for the settings that were run. The noise is the variation between boots within
blocks and variants, so that interactions of three switches do not count as noise.
Where some boots are 0 or less there is no logarithm: the same model of the numbers themselves gives differences in
the metric's unit, in words, with their p-value.
Source: Box, Hunter & Hunter, Statistics for Experimenters, 2nd ed. 2005, ch. 5.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt

import numpy as np
import scipy

from lab.statistics.arms import Arm, ratio_of, table
from lab.statistics.block_model import ROUNDING, Floats, residuals

On = tuple[str, ...]
_MIXED = "not separable from other effects with these variants"


@dataclass(frozen=True, slots=True)
class SwitchEffect:
    """Main effect of one switch or interaction of two, as a ratio with interval; None where `why` tells.

    p_value: of no effect; also without a ratio, where boots are 0 or less and `why` gives the difference.
    """

    switches: tuple[str, ...]
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    why: str = ""


def effects(
    arms: Mapping[On, Arm], switches: Sequence[str], *, controls: Sequence[Arm] = ()
) -> list[SwitchEffect]:
    """Return the effect of each switch, then of each pair, in the order of `switches`.

    arms: by the switches that are on, () is the base. controls: further arms of the base, such as its twin.
    What cannot be estimated is in the list without a ratio and says why; nothing is raised.
    """
    terms: list[On] = [(name,) for name in switches] + list(combinations(switches, 2))
    settings = [frozenset(on) for on in arms]
    boots = table([[arm, *(controls if not on else ())] for on, arm in arms.items()], 0.5)
    missing = {term: _missing(term, [settings[arm] for arm in np.unique(boots.layout.arm)]) for term in terms}
    if not boots.values.size or not np.all(np.isfinite(boots.values)):
        said = "some boot gave no finite number" if boots.values.size else "no valid boot"
        return [SwitchEffect(term, why=missing[term] or said) for term in terms]
    kept = [term for term in terms if not missing[term]]
    boot_settings = [settings[arm] for arm in boots.layout.arm]
    columns = np.array([[_coded(term, on) for term in kept] for on in boot_settings], dtype=float)
    blocks = np.asarray(boots.layout.block[:, None] == np.unique(boots.layout.block), dtype=float)
    without = int(np.count_nonzero(boots.values <= 0))
    numbers = boots.values if without else np.log(boots.values)
    # The noise is estimated from arms, not from terms.
    left, freedom = residuals(numbers, boots.layout), boots.layout.freedom
    sd = sqrt(float(left @ left) / freedom) if freedom else None
    if without and sd is not None and sd <= ROUNDING * float(np.max(np.abs(numbers))):
        sd = 0.0  # boots of a variant agree exactly
    fitted = _fit(numbers, blocks, columns.reshape(len(boot_settings), len(kept)))
    by_term = {
        term: _effect(term, estimate, unit, sd, freedom)
        if not without
        else _difference(term, estimate, unit, sd, freedom, f"0 or less in {without} of {numbers.size} boots")
        for term, (estimate, unit) in zip(kept, fitted, strict=True)
        if estimate is not None
    }
    return [by_term.get(term) or SwitchEffect(term, why=missing[term] or _MIXED) for term in terms]


def _missing(term: On, settings: Sequence[frozenset[str]]) -> str:
    """Say which setting of a term's switches was never run, or nothing."""
    seen = {frozenset(term) & setting for setting in settings}
    if len(term) == 1:
        if frozenset() not in seen:
            return f"{term[0]} was never off"
        return "" if frozenset(term) in seen else f"{term[0]} was never on"
    first, second = term
    if frozenset(term) not in seen:
        return f"{first} and {second} were never on together"
    for name, other in ((first, second), (second, first)):
        if frozenset({name}) not in seen:
            return f"{name} was never on without {other}"
    return "" if frozenset() in seen else f"{first} and {second} were never off together"


def _coded(term: On, on: frozenset[str]) -> float:
    return float(np.prod([0.5 if name in on else -0.5 for name in term]))


def _fit(logs: Floats, blocks: Floats, columns: Floats) -> list[tuple[float | None, float]]:
    """Return by term its estimate and the root of its variance in units of a boot's; None where not estimable."""
    design = np.hstack([blocks, columns])
    inverse = np.linalg.pinv(design)
    resolved = inverse @ design
    estimates: list[tuple[float | None, float]] = []
    for index in range(blocks.shape[1], design.shape[1]):
        row = inverse[index]
        is_estimable = np.allclose(resolved[index], np.eye(design.shape[1])[index], atol=1e-8)
        estimates.append((float(row @ logs) if is_estimable else None, float(np.linalg.norm(row))))
    return estimates


def _difference(
    term: On, estimate: float, unit: float, sd: float | None, freedom: int, why: str
) -> SwitchEffect:
    """Return an effect without a ratio: its p-value, and the difference in the metric's unit in words."""
    what = "on less off" if len(term) == 1 else "both on, beyond each alone,"
    said = f"{why}: there is no ratio; {what} is {estimate:+.4g}"
    if sd is None:
        return SwitchEffect(term, why=f"{said}; one block: an interval needs 2 blocks")
    if not unit * sd:
        return SwitchEffect(term, why=f"{said} in the metric's unit; boots of a variant agree exactly")
    low, high, p_value = _interval(estimate, unit * sd, freedom)
    return SwitchEffect(term, p_value=p_value, why=f"{said} ({low:+.4g} to {high:+.4g}) in the metric's unit")


def _effect(term: On, estimate: float, unit: float, sd: float | None, freedom: int) -> SwitchEffect:
    ratio = ratio_of(estimate)
    if sd is None:
        return SwitchEffect(
            term, ratio, why="one block: the noise cannot be estimated, an interval needs 2 blocks"
        )
    if sd <= ROUNDING:
        ratio = 1.0 if abs(estimate) <= ROUNDING else ratio
        return SwitchEffect(term, ratio, ratio, ratio, why="boots of a variant agree exactly")
    low, high, p_value = _interval(estimate, unit * sd, freedom)
    return SwitchEffect(term, ratio, ratio_of(low), ratio_of(high), p_value)


def _interval(estimate: float, error: float, freedom: int) -> tuple[float, float, float]:
    """Return the ends of an estimate's 95 % interval, and the p-value of no effect."""
    half = float(scipy.stats.t.ppf(0.975, freedom)) * error
    return estimate - half, estimate + half, float(2 * scipy.stats.t.sf(abs(estimate) / error, freedom))
