# SPDX-License-Identifier: GPL-2.0-or-later
"""Noise between boots of one kernel, recorded or made, for `bench.stats`: logs of boot numbers in order.

Recorded: bench/noise/*.json, written by `python -m bench.noise`. Stretches of boots that ran one after
another are drawn (Politis & Romano, J. Am. Stat. Assoc. 89, 1994), so modes and memory of the machine stay; each value gets
a tenth of their spread as jitter, for equal values are rare in guests and common in resamples. Made: shapes that
real machines are known for, each of one size.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.stats_shapes import SD, Floats, Rng, memory, modes

Draw = Callable[[int, int, Rng], Floats]
"""Draws logs of boots in order: (trials, boots, generator) -> (trials, boots)."""
PLACE = Path(__file__).with_name("noise")
STRETCH = 10
LEAST_BOOTS = 12
JITTER = 0.1


@dataclass(frozen=True, slots=True)
class Noise:
    """A source of boots. sd: standard deviation of logs between them."""

    name: str
    draw: Draw
    sd: float


def sources() -> list[Noise]:
    """Return what was recorded, then what is made."""
    return [*_recorded(), *_made()]


def _recorded() -> list[Noise]:
    noises = []
    for path in sorted(PLACE.glob("*.json")) if PLACE.is_dir() else []:
        about = json.loads(path.read_text())
        boots = [np.median(values) for values in about["boots"] if values]
        if len(boots) >= LEAST_BOOTS and min(boots) > 0:
            logs = np.log(np.array(boots, dtype=float))
            noises.append(Noise(f"guest {_short(path)}", _stretches(logs), float(logs.std(ddof=1))))
    return noises


def _stretches(logs: Floats) -> Draw:
    def draw(trials: int, boots: int, rng: Rng) -> Floats:
        starts = rng.integers(logs.size, size=(trials, boots))
        new = rng.random((trials, boots)) < 1 / STRETCH
        new[:, 0] = True
        since = np.maximum.accumulate(np.where(new, np.arange(boots), 0), axis=1)
        at = np.take_along_axis(starts, since, axis=1) + np.arange(boots) - since
        jitter = JITTER * logs.std(ddof=1) * rng.normal(size=(trials, boots))
        return np.asarray(logs[at % logs.size] + jitter, dtype=float)

    return draw


def _made() -> list[Noise]:
    shapes: dict[str, Draw] = {
        "normal": lambda trials, boots, rng: rng.normal(size=(trials, boots)),
        "bimodal 1:4": lambda trials, boots, rng: _modes(trials, boots, rng, 0.2),
        "bimodal 1:1": lambda trials, boots, rng: _modes(trials, boots, rng, 0.5),
        "autocorrelated": memory,
        "heavy tails": lambda trials, boots, rng: rng.standard_t(3, size=(trials, boots)) / np.sqrt(3),
        "all three": _all_three,
    }
    return [Noise(f"made: {name}", _scaled(shape), SD) for name, shape in shapes.items()]


def _scaled(shape: Draw) -> Draw:
    return lambda trials, boots, rng: np.asarray(SD * shape(trials, boots, rng), dtype=float)


def _modes(trials: int, boots: int, rng: Rng, share: float) -> Floats:
    """Two modes that together vary as much as a normal."""
    return np.asarray(modes(trials, boots, rng, share) / np.sqrt(1 + 25 * share * (1 - share)))


def _all_three(trials: int, boots: int, rng: Rng) -> Floats:
    parts = (
        memory(trials, boots, rng),
        _modes(trials, boots, rng, 0.2),
        rng.standard_t(3, size=(trials, boots)) / np.sqrt(3),
    )
    return np.asarray(sum(parts) / np.sqrt(3), dtype=float)


def _short(path: Path) -> str:
    """The workload and preset of a recorded file's name, which ends with the metric."""
    return path.stem.rpartition("-")[0]
