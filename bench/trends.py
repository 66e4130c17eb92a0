# SPDX-License-Identifier: GPL-2.0-or-later
"""Steps in trends: ours beside Apache Otava, on the same seeded series.

Series without a change tell how often a step is imagined; series with steps how many of them are found, how many of
those found are there, and how far off they are. A step counts as found within NEAR revisions of where it is. Sizes are
in standard deviations of the noise, whose every kind has a standard deviation of 1.

    python -m bench.trends [--series N] [--seed N] [--home DIR]
"""

import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.command import installed, run
from lab.statistics.change_points import LEAST_REVISIONS, TrendNumbers, change_points, steps_of

HOME = Path(tempfile.gettempdir()) / "kperflab-bench-trends"
OTAVA = "apache-otava==0.8.0"
# Runs in Otava's own environment: series as JSON in, for each the places of its steps and the CPU seconds out.
OTAVA_SIDE = """
import json, sys, time
from otava.analysis import compute_change_points
answers = []
for values in json.load(sys.stdin):
    started = time.process_time()
    steps, _ = compute_change_points(values)
    answers.append([[int(step.index) for step in steps], time.process_time() - started])
json.dump(answers, sys.stdout)
"""
LENGTH = 100
NEAR = 5
LEVEL = 100.0
SIZES = (1.0, 2.0)
SHORT = (10, 12, 13, 15, 16, 18, 20, 24, 30, 60)
LONE = (3.0, 6.0, 10.0, 100.0)
TIMED = {100: 100, 1000: 30, 10_000: 5}
TRIES = 3
DEADLINE_S = 3600.0

Array = NDArray[np.float64]
Noise = Callable[[np.random.Generator, int], Array]
Answer = tuple[list[int], float]
Finder = Callable[[Sequence[Array]], list[Answer]]


@dataclass(frozen=True, slots=True)
class Series:
    """Numbers, one a revision, and the first revision after each step that is in them."""

    values: Array
    steps: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Draws:
    """The number of series of each kind, and the seed that they are drawn from."""

    series: int
    seed: int


@dataclass(frozen=True, slots=True)
class Score:
    """Of many series with steps: fractions, and revisions between a step and where it was found (median)."""

    precision: float
    recall: float
    distance: float


def autocorrelated(generator: np.random.Generator, count: int, rho: float = 0.5) -> Array:
    """An AR(1) series of variance 1, begun in its own distribution."""
    values = generator.normal(size=count)
    for at in range(1, count):
        values[at] = rho * values[at - 1] + np.sqrt(1 - rho * rho) * values[at]
    return values


def bimodal(generator: np.random.Generator, count: int) -> Array:
    """Two modes, as of a kernel that boots with its tables in one of two places."""
    values: Array = generator.choice([-1.0, 1.0], size=count) + generator.normal(0, 0.3, size=count)
    scaled: Array = values / np.sqrt(1.09)
    return scaled


NOISE: Mapping[str, Noise] = {
    "normal": lambda generator, count: generator.normal(size=count),
    "heavy-tailed (t3)": lambda generator, count: generator.standard_t(3, size=count) / np.sqrt(3),
    "lognormal": lambda generator, count: (
        (np.exp(generator.normal(size=count)) - np.exp(0.5)) / np.sqrt((np.e - 1) * np.e)
    ),
    "AR(1), rho 0.5": autocorrelated,
    "bimodal": bimodal,
}


ALIKE: Mapping[str, Noise] = {
    "AR(1), rho 0.3": lambda generator, count: autocorrelated(generator, count, 0.3),
    "AR(1), rho 0.6": lambda generator, count: autocorrelated(generator, count, 0.6),
    "AR(1), rho 0.8": lambda generator, count: autocorrelated(generator, count, 0.8),
    "moving average of 4": lambda generator, count: np.convolve(
        generator.normal(size=count + 3), np.ones(4) / 2, "valid"
    ),
}


def quiet(noise: Noise, generator: np.random.Generator, count: int = LENGTH) -> Series:
    """A series without any change."""
    return Series(LEVEL + noise(generator, count), ())


def stepped(noise: Noise, generator: np.random.Generator, size: float) -> Series:
    """One step of this size, up or down, in the middle three fifths."""
    at = int(generator.integers(LENGTH // 5, 4 * LENGTH // 5))
    values = quiet(noise, generator).values
    values[at:] += size * generator.choice([-1.0, 1.0])
    return Series(values, (at,))


def eventful(noise: Noise, generator: np.random.Generator) -> Series:
    """300 revisions: a regression, its repair 12 revisions later, a large step and a small one."""
    values = quiet(noise, generator, 300).values
    shift = int(generator.integers(0, 20))
    steps = tuple(at + shift for at in (60, 72, 150, 220))
    for at, size in zip(steps, (3.0, -3.0, 8.0, -1.5), strict=True):
        values[at:] += size
    return Series(values, steps)


def ours(series: Sequence[Array]) -> list[Answer]:
    """Our sure steps, and the CPU seconds of each series."""
    return [_timed(steps_of, values) for values in series]


def with_pending(series: Sequence[Array]) -> list[Answer]:
    """Return our steps, and those that are pending since neighbouring revisions are alike, and the CPU seconds."""
    return [_timed(shown, values) for values in series]


def shown(values: Array) -> list[int]:
    """Return the first revision after each step, sure or not."""
    return change_points(TrendNumbers(values, np.arange(len(values) + 1), LEAST_REVISIONS))


def _timed(find: Callable[[Array], list[int]], values: Array) -> Answer:
    started = time.process_time()
    steps = find(values)
    return steps, time.process_time() - started


def otava(python: Path, series: Sequence[Array]) -> list[Answer]:
    """Otava's steps with its own defaults."""
    sent = json.dumps([values.tolist() for values in series])
    done = subprocess.run(
        [str(python), "-c", OTAVA_SIDE],
        input=sent,
        capture_output=True,
        text=True,
        check=True,
        timeout=DEADLINE_S,
    )
    return [(steps, seconds) for steps, seconds in json.loads(done.stdout)]


def false_share(answers: Sequence[Answer]) -> float:
    """The share of series in which a step was found, of series that have none."""
    return sum(bool(steps) for steps, _ in answers) / len(answers)


def score(series: Sequence[Series], answers: Sequence[Answer]) -> Score:
    """Match each step that was found to the nearest one that is there and still free, if it is near."""
    there = reported = 0
    distances: list[int] = []
    for trend, (steps, _) in zip(series, answers, strict=True):
        there += len(trend.steps)
        reported += len(steps)
        free = list(trend.steps)
        for step in steps:
            nearest = min(free, key=lambda at, step=step: abs(at - step), default=None)  # type: ignore[misc]
            if nearest is not None and abs(nearest - step) <= NEAR:
                free.remove(nearest)
                distances.append(abs(nearest - step))
    matched = len(distances)
    return Score(
        matched / reported if reported else 1.0,
        matched / there,
        statistics.median(distances or [float("nan")]),
    )


def main(series: int = 1000, seed: int = 1, home: Path = HOME) -> None:
    """Race them and print the tables."""
    options = Draws(series, seed)
    python = installed(OTAVA, home) / "python"
    finders: Mapping[str, Finder] = {
        "ours": ours,
        "+ pending": with_pending,
        "Otava": lambda series: otava(python, series),
    }
    print(f"{OTAVA}, {options.series} series each, seed {options.seed}\n")
    _false_table(finders, options)
    _short_tables(options)
    for size in SIZES:
        print(f"\none step of {size:g} sd in {LENGTH} revisions")
        _score_table(finders, options, lambda noise, generator, size=size: stepped(noise, generator, size))  # type: ignore[misc]
    print("\nfour steps in 300 revisions: +3 sd, back after 12, +8 sd, -1.5 sd")
    _score_table(finders, options, eventful)
    _time_table(finders, options)


def _false_table(finders: Mapping[str, Finder], options: Draws) -> None:
    print(f"no change in {LENGTH} revisions: share of series with a step")
    print(f"{'noise':20}" + "".join(f"{name:>10}" for name in finders))
    for kind, noise in NOISE.items():
        generator = np.random.default_rng(options.seed)
        series = [quiet(noise, generator).values for _ in range(options.series)]
        shares = [false_share(find(series)) for find in finders.values()]
        print(f"{kind:20}" + "".join(f"{share:10.1%}" for share in shares), flush=True)


def _short_tables(options: Draws) -> None:
    """Ours in short trends: false steps by autocorrelation, and one lone step that is five revisions old."""
    print("\nours in short trends: series without a change that show a sure step (with pending ones)")
    print(f"{'revisions':20}" + "".join(f"{count:>16}" for count in SHORT))
    for kind, noise in {**NOISE, **ALIKE}.items():
        generator = np.random.default_rng(options.seed)
        shares = []
        for count in SHORT:
            series = [quiet(noise, generator, count).values for _ in range(options.series)]
            shares.append([false_share(find(series)) for find in (ours, with_pending)])
        print(f"{kind:20}" + "".join(f"{f'{a:.1%} ({b:.1%})':>16}" for a, b in shares), flush=True)
    print("\nours: a lone step, five revisions old, found as sure within one revision (with pending ones)")
    for size in LONE:
        generator, hits = np.random.default_rng(options.seed), []
        for count in SHORT:
            jump = size * (np.arange(count) >= count - 5)
            lone = [quiet(NOISE["normal"], generator, count).values + jump for _ in range(options.series)]
            hits.append([_near(find(lone), count - 5) for find in (ours, with_pending)])
        print(f"{f'{size:g} sd':20}" + "".join(f"{f'{a:.0%} ({b:.0%})':>16}" for a, b in hits), flush=True)


def _near(answers: Sequence[Answer], place: int) -> float:
    return sum(any(abs(at - place) <= 1 for at in steps) for steps, _ in answers) / len(answers)


def _score_table(
    finders: Mapping[str, Finder],
    options: Draws,
    make: Callable[[Noise, np.random.Generator], Series],
) -> None:
    print(
        f"{'noise':20}"
        + "".join(f"{name + ' precision':>17}{'recall':>8}{'distance':>10}" for name in finders)
    )
    for kind, noise in NOISE.items():
        generator = np.random.default_rng(options.seed + 1)
        series = [make(noise, generator) for _ in range(options.series)]
        scores = [score(series, find([trend.values for trend in series])) for find in finders.values()]
        cells = "".join(f"{s.precision:17.1%}{s.recall:8.1%}{s.distance:10.1f}" for s in scores)
        print(f"{kind:20}{cells}", flush=True)


def _time_table(finders: Mapping[str, Finder], options: Draws) -> None:
    """CPU time, each series at its best of a few tries; half of the series have a step in the middle."""
    print("\nCPU time of a series, median")
    print(f"{'revisions':20}" + "".join(f"{name:>12}" for name in finders) + f"{'times faster':>14}")
    for length, count in TIMED.items():
        generator = np.random.default_rng(options.seed + 2)
        series = [LEVEL + generator.normal(size=length) for _ in range(count)]
        for values in series[::2]:
            values[length // 2 :] += 2
        took = []
        for find in finders.values():
            tries = [[seconds for _, seconds in find(series)] for _ in range(TRIES)]
            took.append(statistics.median(min(times) for times in zip(*tries, strict=True)))
        cells = "".join(f"{1e3 * seconds:9.3f} ms" for seconds in took)
        print(f"{length:<20}{cells}{took[-1] / took[0]:14.0f}", flush=True)


if __name__ == "__main__":
    run(main)
