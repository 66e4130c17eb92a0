# SPDX-License-Identifier: GPL-2.0-or-later
"""Our verdicts on the shapes of bench/stats_shapes.py and stats_unseen.py: how often equal boots are called changed, and others found."""

import zlib
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from bench.stats_shapes import ARMS, CANDIDATE, SHAPES, Floats, Shape
from bench.stats_unseen import UNSEEN
from lab.statistics.block_model import BlockLayout
from lab.statistics.rank_test import p_values
from lab.statistics.sequential import ALPHA, LOOKS, level_at
from lab.statistics.zeros import zero_p_values

BOOTS = (5, 10, 20)
GOAL = (0.03, 0.06)
NAME = 28


def by_name(name: str) -> Shape:
    """Return the shape of that name."""
    return next(shape for shape in (*SHAPES, *UNSEEN) if shape.name == name)


def alarms(shape: Shape, trials: int, boots: int, seed: int, times: float = 1.0) -> float:
    """Return the share of experiments called changed whose candidate is so many times what the shape draws."""
    return float(np.mean(_p_values(_drawn(shape, trials, boots, seed, times), boots, looks=False) <= ALPHA))


def stopped(
    shape: Shape, trials: int, seed: int, times: float = 1.0
) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Return which experiments are called changed under `boots = "auto"`, and after how many blocks."""
    values = _drawn(shape, trials, LOOKS[-1], seed, times)
    called, blocks = np.zeros(trials, dtype=bool), np.full(trials, LOOKS[-1])
    for look in LOOKS:
        now = (_p_values(values, look, looks=True) <= level_at(look)) & ~called
        blocks[now] = look
        called |= now
    return called, blocks


def tables(trials: int, seed: int) -> Iterator[str]:
    """Yield the table of the shapes that the rules were developed with, then that of the others."""
    yield from _table("SHAPES", SHAPES, trials, seed)
    yield ""
    yield from _table("SHAPES THAT NO RULE WAS DEVELOPED WITH", UNSEEN, trials, seed)


def _table(title: str, shapes: Sequence[Shape], trials: int, seed: int) -> Iterator[str]:
    """Yield the false alarms of every shape, what is found of a change, and how many are outside the goal."""
    yield f"FALSE ALARMS, %, ON {title} (goal {GOAL[0]:.0%} to {GOAL[1]:.0%}; ! above, - below it); found of +2 % (with zeros: of three times)"
    heads = "".join(f"{head:>7}" for head in (*BOOTS, "auto"))
    yield f"{'':{NAME}}{heads}   found{heads[7:]}  boots"
    above = below = cells = 0
    for shape in shapes:
        shares = [alarms(shape, trials, boots, seed) for boots in BOOTS]
        shares.append(float(np.mean(stopped(shape, trials, seed)[0])))
        hits = [alarms(shape, trials, boots, seed, shape.larger) for boots in BOOTS]
        called, blocks = stopped(shape, trials, seed, shape.larger)
        hits.append(float(np.mean(called)))
        above += sum(share > GOAL[1] for share in shares)
        below += sum(share < GOAL[0] for share in shares if not shape.coarse)
        cells += len(shares)
        marks = "".join(f"{100 * share:6.1f}{_mark(share)}" for share in shares)
        yield (
            f"{shape.name:{NAME}}{marks}   "
            + "".join(f"{100 * s:7.0f}" for s in hits)
            + f"{blocks.mean():7.1f}"
        )
    yield f"above the goal in {above} of {cells} cells; below it in {below} (not counting shapes too coarse for any test)"


def _mark(share: float) -> str:
    return "!" if share > GOAL[1] else "-" if share < GOAL[0] else " "


def _drawn(shape: Shape, trials: int, boots: int, seed: int, times: float) -> Floats:
    values = shape.draw(trials, boots, np.random.default_rng([seed, boots, zlib.crc32(shape.name.encode())]))
    values[:, :, CANDIDATE] *= times
    return values


def _p_values(values: Floats, blocks: int, *, looks: bool) -> Floats:
    """Return the p-values estimate() gives after so many blocks: by logs, or by order where some boot is 0."""
    flat = values[:, :blocks].reshape(len(values), -1)
    layout = BlockLayout(
        np.repeat(np.arange(blocks), ARMS), np.tile(np.array([0, 0, 1], dtype=np.intp), blocks)
    )
    p = np.ones(len(flat))
    positive = (flat > 0).all(axis=1)
    constant = flat.max(axis=1) == flat.min(axis=1)
    if positive.any():
        p[positive] = p_values(np.log(flat[positive]), layout, looks=looks)
    if not positive.all():
        p[~positive] = zero_p_values(flat[~positive], layout, looks=looks)
    return np.where(constant, 1.0, p)
