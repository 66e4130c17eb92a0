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
from numpy.typing import NDArray

Floats = NDArray[np.float64]
PLACE = Path(__file__).with_name("noise")
# Standard deviation between boots of the shapes that are made: 2 %.
SD = 0.02
STRETCH = 10
LEAST_BOOTS = 12
JITTER = 0.1


@dataclass(frozen=True, slots=True)
class Noise:
    """A source: its name, and what draws logs of boots in order, (trials, boots, generator) -> (trials, boots)."""

    name: str
    draw: Callable[[int, int, np.random.Generator], Floats]
    sd: float


def sources() -> list[Noise]:
    """Return what was recorded, then what is made."""
    return [*_recorded(), *_made()]


def _recorded() -> list[Noise]:
    found = []
    for path in sorted(PLACE.glob("*.json")) if PLACE.is_dir() else []:
        about = json.loads(path.read_text())
        boots = [np.median(values) for values in about["boots"] if values]
        if len(boots) >= LEAST_BOOTS and min(boots) > 0:
            logs = np.log(np.array(boots, dtype=float))
            found.append(Noise(f"guest {_short(path)}", _stretches(logs), float(logs.std(ddof=1))))
    return found


def _stretches(logs: Floats) -> Callable[[int, int, np.random.Generator], Floats]:
    def draw(trials: int, boots: int, rng: np.random.Generator) -> Floats:
        starts = rng.integers(logs.size, size=(trials, boots))
        new = rng.random((trials, boots)) < 1 / STRETCH
        new[:, 0] = True
        since = np.maximum.accumulate(np.where(new, np.arange(boots), 0), axis=1)
        at = np.take_along_axis(starts, since, axis=1) + np.arange(boots) - since
        jitter = JITTER * logs.std(ddof=1) * rng.normal(size=(trials, boots))
        return np.asarray(logs[at % logs.size] + jitter, dtype=float)

    return draw


def _made() -> list[Noise]:
    shapes: dict[str, Callable[[int, int, np.random.Generator], Floats]] = {
        "normal": lambda trials, boots, rng: rng.normal(size=(trials, boots)),
        # A fifth of the boots 5 of the others' deviations slower.
        "bimodal 1:4": lambda trials, boots, rng: _modes(trials, boots, rng, share=0.2, apart=5.0),
        "bimodal 1:1": lambda trials, boots, rng: _modes(trials, boots, rng, share=0.5, apart=5.0),
        "autocorrelated": lambda trials, boots, rng: _memory(rng.normal(size=(trials, boots))),
        "heavy tails": lambda trials, boots, rng: rng.standard_t(3, size=(trials, boots)) / np.sqrt(3),
        "all three": _all_three,
    }
    return [Noise(f"made: {name}", _scaled(shape), SD) for name, shape in shapes.items()]


def _scaled(
    shape: Callable[[int, int, np.random.Generator], Floats],
) -> Callable[[int, int, np.random.Generator], Floats]:
    return lambda trials, boots, rng: np.asarray(SD * shape(trials, boots, rng), dtype=float)


def _modes(trials: int, boots: int, rng: np.random.Generator, *, share: float, apart: float) -> Floats:
    drawn = rng.normal(size=(trials, boots)) + apart * (rng.random((trials, boots)) < share)
    return np.asarray(drawn / np.sqrt(1 + apart**2 * share * (1 - share)), dtype=float)


def _memory(fresh: Floats, keeps: float = 0.8) -> Floats:
    """AR(1): each boot keeps four fifths of what the one before was off by."""
    walk = fresh.copy()
    for boot in range(1, fresh.shape[1]):
        walk[:, boot] = keeps * walk[:, boot - 1] + np.sqrt(1 - keeps**2) * fresh[:, boot]
    return walk


def _all_three(trials: int, boots: int, rng: np.random.Generator) -> Floats:
    parts = (
        _memory(rng.normal(size=(trials, boots))),
        _modes(trials, boots, rng, share=0.2, apart=5.0),
        rng.standard_t(3, size=(trials, boots)) / np.sqrt(3),
    )
    return np.asarray(sum(parts) / np.sqrt(3), dtype=float)


def _short(path: Path) -> str:
    """The workload and preset of a recorded file's name, which ends with the metric."""
    return path.stem.rpartition("-")[0]
