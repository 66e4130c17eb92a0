# SPDX-License-Identifier: GPL-2.0-or-later
"""Error rates of our verdicts and our peers', and the boots that they need, by simulation.

Each simulated experiment boots the base, its twin and a candidate in blocks of random order, through noise recorded on
real guests (bench/noise/*.json) and through simulated noise of known shapes, many of which our methods do not
assume (bench/stats_shapes.py). Every rule judges the same boots:
the candidate's n and the base's 2n. A boot counts as one number for all of them.

    python -m bench.stats [--trials N] [--seed N] [--quick]
"""

import zlib
from collections.abc import Iterator, Sequence
from math import log1p
from typing import Annotated

import numpy as np
import typer

from bench.command import run
from bench.stats_noise import Noise, sources
from bench.stats_null import tables as null_tables
from bench.stats_rules import ATTEMPTS, RULES, our_stopping, pinpoint_stopping
from bench.stats_shapes import Floats
from lab.statistics.block_model import BlockLayout
from lab.statistics.rank_test import p_values
from lab.statistics.sequential import ALPHA, LOOKS

BOOTS = (3, 5, 10, 20)
EFFECTS = (0.01, 0.02, 0.05)
GOAL = (0.03, 0.06)
TRIALS, QUICK_TRIALS = 10_000, 1_000
# Boots a side among which the fewest with 80 % power are sought.
SOUGHT = (3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20, 24, 28, 32, 40, 48, 64)
POWER = 0.8
ARMS = (3, 4, 6, 10)
NAME = 26


def main(
    trials: Annotated[int, typer.Option(help=f"experiments a cell, {TRIALS} unless told")] = 0,
    seed: int = 1,
    quick: Annotated[bool, typer.Option("--quick", help=f"{QUICK_TRIALS} experiments a cell")] = False,
) -> None:
    """Print the tables."""
    trials = trials or (QUICK_TRIALS if quick else TRIALS)
    noises = sources()
    print(f"{trials} experiments a cell, seed {seed}; boots are the candidate's, the base has twice as many.")
    if not any(noise.name.startswith("guest") for noise in noises):
        print("No noise recorded on guests (bench/noise/*.json): SIMULATED NOISE ONLY.")
    for noise in noises:
        print(f"  {noise.name:{NAME}} {noise.sd:.2%} between boots")
    print()
    for line in null_tables(trials, seed):
        print(line, flush=True)
    for table in (false_alarms, out_of_order, unequal, power, fewest, more_arms, stopping):
        print()
        for line in table(noises, trials, seed):
            print(line, flush=True)


def false_alarms(noises: Sequence[Noise], trials: int, seed: int) -> Iterator[str]:
    """Yield the share of equal kernels that are called changed; ! marks ours outside the goal."""
    yield f"FALSE ALARMS, %, by boots (ours aims at 5, goal {GOAL[0]:.0%} to {GOAL[1]:.0%}; ! is outside)"
    yield _head([str(boots) for boots in BOOTS])
    outside = 0
    for noise in noises:
        shares = {name: [] for name in RULES}  # type: dict[str, list[float]]
        for boots in BOOTS:
            base, candidate = _blocks(noise, trials, boots, seed)
            for name, rule in RULES.items():
                shares[name].append(float(rule(base, candidate).mean()))
        marks = [not GOAL[0] <= share <= GOAL[1] for share in shares["ours"]]
        outside += sum(marks)
        yield _row(noise.name, [[f"{100 * s:.1f}" for s in shares[name]] for name in RULES], marks)
    yield f"ours outside the goal in {outside} of {len(noises) * len(BOOTS)} cells"


def out_of_order(noises: Sequence[Noise], trials: int, seed: int) -> Iterator[str]:
    """Yield the peers' false alarms where, as they do, one side boots before the other."""
    yield "FALSE ALARMS, %, if all boots of the base run before all of the candidate (ours never does that)"
    yield _head([str(boots) for boots in BOOTS])
    for noise in noises:
        shares: list[list[str]] = [["–"] * len(BOOTS)]
        for rule in list(RULES.values())[1:]:
            row = []
            for boots in BOOTS:
                drawn = noise.draw(trials, 3 * boots, _rng(seed, noise, boots, "order"))
                row.append(f"{100 * rule(drawn[:, : 2 * boots], drawn[:, 2 * boots :]).mean():.1f}")
            shares.append(row)
        yield _row(noise.name, shares)


def unequal(noises: Sequence[Noise], trials: int, seed: int) -> Iterator[str]:
    """Yield false alarms where the candidate is noisier or calmer than the base and not shifted."""
    yield "FALSE ALARMS, %, IF THE CANDIDATE'S BOOTS VARY OTHERWISE THAN THE BASE'S (normal)"
    yield _head([str(boots) for boots in BOOTS])
    normal = next(noise for noise in noises if noise.name == "made: normal")
    for name, times in (("twice as much", 2.0), ("half as much", 0.5)):
        shares: dict[str, list[str]] = {rule: [] for rule in RULES}
        for boots in BOOTS:
            base, candidate = _blocks(normal, trials, boots, seed)
            for rule, calls in RULES.items():
                shares[rule].append(f"{100 * calls(base, times * candidate).mean():.1f}")
        yield _row(name, list(shares.values()))


def power(noises: Sequence[Noise], trials: int, seed: int) -> Iterator[str]:
    """Yield the share of real shifts that are called."""
    for effect in EFFECTS:
        yield f"FOUND OF A SHIFT OF {effect:+.0%}, %, by boots"
        yield _head([str(boots) for boots in BOOTS])
        for noise in noises:
            shares: dict[str, list[str]] = {name: [] for name in RULES}
            for boots in BOOTS:
                base, candidate = _blocks(noise, trials, boots, seed)
                for name, rule in RULES.items():
                    shares[name].append(f"{100 * rule(base, candidate + log1p(effect)).mean():.0f}")
            yield _row(noise.name, list(shares.values()))
        yield ""


def fewest(noises: Sequence[Noise], trials: int, seed: int) -> Iterator[str]:
    """Yield the boots from which four of five shifts are found."""
    yield f"FEWEST BOOTS THAT FIND {POWER:.0%} OF SHIFTS OF {', '.join(f'{e:+.0%}' for e in EFFECTS)} (– is over {SOUGHT[-1]})"
    yield _head([f"{effect:+.0%}" for effect in EFFECTS])
    for noise in noises:
        needed = {name: ["–"] * len(EFFECTS) for name in RULES}
        for boots in SOUGHT:
            open_cells = [(n, i) for n, row in needed.items() for i, cell in enumerate(row) if cell == "–"]
            if not open_cells:
                break
            base, candidate = _blocks(noise, max(trials // 4, 500), boots, seed)
            for name, index in open_cells:
                if RULES[name](base, candidate + log1p(EFFECTS[index])).mean() >= POWER:
                    needed[name][index] = str(boots)
        yield _row(noise.name, list(needed.values()))


def more_arms(noises: Sequence[Noise], trials: int, seed: int) -> Iterator[str]:
    """Yield what the boots of other variants are worth to ours, where boots are fewest."""
    blocks = BOOTS[0]
    yield f"OURS AT {blocks} BOOTS, %, by arms (base, twin, candidate, other variants)"
    groups = ["FALSE ALARMS", *(f"FOUND OF {effect:+.0%}" for effect in EFFECTS)]
    width = 6 * len(ARMS)
    yield f"{'':{NAME}}" + "".join(f"{group:>{width}}  " for group in groups)
    yield f"{'':{NAME}}" + ("".join(f"{arms:>6}" for arms in ARMS) + "  ") * len(groups)
    for noise in noises:
        rows: list[list[str]] = [[] for _ in groups]
        for arms in ARMS:
            drawn = _drawn(noise, trials, blocks, arms, seed)
            layout = BlockLayout(
                np.repeat(np.arange(blocks), arms), np.tile(np.maximum(np.arange(arms) - 1, 0), blocks)
            )
            for row, effect in zip(rows, (0.0, *EFFECTS), strict=True):
                shifted = drawn + log1p(effect) * (np.arange(arms) == 2)
                row.append(f"{100 * np.mean(p_values(shifted.reshape(trials, -1), layout) <= ALPHA):.1f}")
        yield _row(noise.name, rows)


def stopping(noises: Sequence[Noise], trials: int, seed: int) -> Iterator[str]:
    """Yield what adding boots only where needed finds and costs, ours beside Pinpoint's."""
    effects = (0.0, *EFFECTS)
    yield f"STOPPING EARLY: % called, and boots on average (ours {LOOKS[0]} to {LOOKS[-1]}; Pinpoint {ATTEMPTS[0]} to {ATTEMPTS[-1]})"
    yield f"{'shift':{NAME}}" + "".join(f"{f'{effect:+.0%}':>34}" for effect in effects)
    yield f"{'':{NAME}}" + f"{'ours':>12}{f'fixed {LOOKS[-1]}':>10}{'Pinpoint':>12}" * len(effects)
    for noise in noises:
        cells = ""
        base, candidate = _blocks(noise, trials, LOOKS[-1], seed)
        far_base, far = _blocks(noise, max(trials // 4, 500), ATTEMPTS[-1], seed)
        for effect in effects:
            ours, boots = our_stopping(base, candidate + log1p(effect))
            fixed = RULES["ours"](base, candidate + log1p(effect)).mean()
            theirs, attempts = pinpoint_stopping(far_base[:, ::2], far + log1p(effect))
            cells += f"{f'{100 * ours.mean():.1f} {boots.mean():.1f}':>12}{f'{100 * fixed:.0f}':>10}"
            cells += f"{f'{100 * theirs.mean():.1f} {attempts.mean():.0f}':>12}"
        yield f"{noise.name:{NAME}}" + cells


def _blocks(noise: Noise, trials: int, blocks: int, seed: int) -> tuple[Floats, Floats]:
    """Return logs of base and candidate: blocks of base, twin and candidate, each block in random order."""
    drawn = _drawn(noise, trials, blocks, 3, seed)
    return drawn[:, :, :2].reshape(trials, -1), drawn[:, :, 2]


def _drawn(noise: Noise, trials: int, blocks: int, arms: int, seed: int) -> Floats:
    """Return logs of boots, each block in random order: (trials, blocks, arms)."""
    rng = _rng(seed, noise, blocks, f"{arms} arms")
    drawn = noise.draw(trials, arms * blocks, rng).reshape(trials, blocks, arms)
    return np.take_along_axis(drawn, np.argsort(rng.random(drawn.shape), axis=2), axis=2)


def _rng(seed: int, noise: Noise, boots: int, purpose: str) -> np.random.Generator:
    return np.random.default_rng([seed, boots, zlib.crc32(f"{noise.name} {purpose}".encode())])


def _head(cells: Sequence[str]) -> str:
    names = "".join(f"{name:>{6 * len(cells)}}  " for name in RULES)
    return f"{'':{NAME}}{names}\n{'':{NAME}}" + ("".join(f"{cell:>6}" for cell in cells) + "  ") * len(RULES)


def _row(name: str, groups: Sequence[Sequence[str]], marks: Sequence[bool] = ()) -> str:
    """Lay out one line; marks belong to the first group."""
    text = ""
    for number, cells in enumerate(groups):
        marked = marks if number == 0 and marks else [False] * len(cells)
        text += "".join(f"{cell + '!' * mark:>6}" for cell, mark in zip(cells, marked, strict=True)) + "  "
    return f"{name:{NAME}}{text}"


if __name__ == "__main__":
    run(main)
