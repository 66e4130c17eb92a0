# SPDX-License-Identifier: GPL-2.0-or-later
"""Lock waits and counters in which nothing moved but chance: how often a page calls something, and what is found.

Lock sites: `even` ones wait a random number of times, each a lognormal while; `restless` ones 30 % more or less often in each
boot; in `boots` all sites do, by half; `uneven` ones differ by 20 % typically; `bimodal` ones wait three times as often in three
boots of ten; waits of `heavy` ones have long tails. Counters: counts of the same shapes; `bursts` are there in three boots of
ten only, `signed` ones are differences of two counts.

    python -m bench.wait_noise [--pages N]
"""

from collections.abc import Callable, Sequence
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from bench.command import run
from lab.profiles.analysis.counter_shifts import counter_shifts
from lab.profiles.analysis.share_shifts import Sides, compare
from lab.profiles.analysis.wait_shifts import compare_waits
from lab.statistics.block_model import BlockLayout

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
WAIT_SHAPES = ("even", "restless", "boots", "uneven", "bimodal", "heavy")
COUNTER_SHAPES = ("even", "restless", "boots", "uneven", "bimodal", "bursts", "signed")
# Boots of the base, of the candidate, and of other variants.
DESIGNS = ((3, 3), (6, 3), (5, 5), (6, 3, 3, 3))
# Blocks, and variants beside base, twin and candidate.
BLOCKS = ((3, 0), (3, 2), (5, 1))
COUNTERS = 100


def main(pages: Annotated[int, typer.Option(help="simulated pages per cell")] = 300) -> None:
    """Print the rates."""
    print(
        f"pages of lock sites that call one, of 100 ({pages} pages each; goal 5); behind it, what is made for counts"
    )
    _table(
        DESIGNS, (12, 80), WAIT_SHAPES, lambda design, sites, shape: _wait_rates(pages, design, sites, shape)
    )
    print("\none site's waiting down to a third: found in, of 100")
    _table(
        DESIGNS, (12, 80), WAIT_SHAPES, lambda design, sites, shape: _wait_power(pages, design, sites, shape)
    )
    print(f"\npages of {COUNTERS} counters that call one, of 100")
    _table(BLOCKS, (COUNTERS,), COUNTER_SHAPES, lambda design, _, shape: _counter_rate(pages, design, shape))


def _table(
    designs: Sequence[tuple[int, ...]],
    sizes: Sequence[int],
    shapes: Sequence[str],
    cell: Callable[[tuple[int, ...], int, str], str],
) -> None:
    print(f"  {'':14}" + "".join(f"{'/'.join(map(str, design)):>22}" for design in designs))
    for size in sizes:
        for shape in shapes:
            cells = "".join(f"{cell(design, size, shape):>22}" for design in designs)
            print(f"  {size:3} {shape:10}{cells}", flush=True)


def _restless(rng: np.random.Generator, shape: str, rows: int, boots: int) -> Floats:
    """Return how much more or less each row does in each boot."""
    factors = np.ones((rows, boots))
    if shape == "restless":
        return rng.lognormal(0, 0.3, factors.shape)
    if shape == "boots":
        return rng.lognormal(0, 0.5, (1, boots)) * factors
    if shape == "uneven":
        spread = rng.lognormal(np.log(0.2), 1, (rows, 1))
        return np.asarray(np.minimum(np.exp(rng.normal(0, 1, factors.shape) * spread), 20.0))
    if shape == "bimodal":
        return np.where(rng.random(factors.shape) < 0.3, 3.0, 1.0)
    return np.where(rng.random(factors.shape) < 0.3, 1.0, 0.0) if shape == "bursts" else factors


def null_waits(rng: np.random.Generator, shape: str, sites: int, boots: int) -> Integers:
    """Nanoseconds waited: int64[sites, boots]."""
    often = np.minimum((rng.pareto(0.9, sites) + 0.05) * 8, 3000)[:, None]
    length = rng.lognormal(10, 1, sites)
    numbers = rng.poisson(often * _restless(rng, shape, sites, boots))
    tail = 2.2 if shape == "heavy" else 1.2
    rows = [
        [int(rng.lognormal(np.log(length[site]), tail, count).sum()) for count in row]
        for site, row in enumerate(numbers)
    ]
    return np.array(rows, np.int64)


def null_counters(rng: np.random.Generator, shape: str, boots: int) -> Floats:
    """Counts: float64[COUNTERS, boots]."""
    level = np.exp(rng.uniform(-2, 14, (COUNTERS, 1))) * _restless(rng, shape, COUNTERS, boots)
    taken = rng.poisson(level)
    return np.asarray(taken - rng.poisson(level) if shape == "signed" else taken, dtype=float)


def _sides(design: tuple[int, ...]) -> Sides:
    return Sides(np.repeat(np.arange(len(design)), design), 0, 1)


def _wait_rates(pages: int, design: tuple[int, ...], sites: int, shape: str) -> str:
    """By time waited, by shares of it; and of those by the test for counts."""
    rng, sides = np.random.default_rng(11), _sides(design)
    called = np.zeros(4, int)
    for _ in range(pages):
        times = null_waits(rng, shape, sites, sum(design))
        whole = times.sum(axis=0)
        for place, judge in enumerate((compare_waits, compare)):
            called[2 * place] += bool(judge(times, whole, sides, scale="samples").certain.any())
            called[2 * place + 1] += bool(judge(times, whole, sides, scale="shares").certain.any())
    rates = [f"{100 * count / pages:.1f}" for count in called]
    return f"{rates[0]} {rates[1]} ({rates[2]} {rates[3]})"


def _wait_power(pages: int, design: tuple[int, ...], sites: int, shape: str) -> str:
    rng, sides = np.random.default_rng(11), _sides(design)
    hits = 0
    for _ in range(pages):
        times = null_waits(rng, shape, sites, sum(design))
        # Neither the largest site nor one of those that hardly wait.
        site = np.argsort(times.sum(axis=1))[-3]
        times[site, sides.group == 1] //= 3
        hits += bool(compare_waits(times, times.sum(axis=0), sides).certain[site])
    return f"{100 * hits / pages:.0f}"


def _counter_rate(pages: int, design: tuple[int, ...], shape: str) -> str:
    blocks, others = design
    arms = np.repeat([0, 0, 1, *range(2, 2 + others)], blocks)
    layout = BlockLayout(np.tile(np.arange(blocks), 3 + others), arms)
    rng = np.random.default_rng(2)
    called = 0
    for _ in range(pages):
        called += bool((counter_shifts(null_counters(rng, shape, arms.size), layout).q <= 0.05).any())
    return f"{100 * called / pages:.1f}"


if __name__ == "__main__":
    run(main)
