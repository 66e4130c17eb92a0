# SPDX-License-Identifier: GPL-2.0-or-later
"""Differences of profiles: server CPU for two trees of 35,000 nodes, and how often base against base looks changed.

A page of two base profiles may call some frame certainly changed at most once in twenty. Made profiles come in the shapes of
bench/profile_noise.py; real ones are the base's and its twin's in the lab's own tables, drawn at random into two sides.

    python -m bench.profile_diff [--pages N] [--real N]
"""

import json
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Annotated

import numpy as np
import typer

import workers.app  # noqa: F401  makes Django ready before lab is imported
from bench.command import run
from bench.profile_noise import SHAPES, null_page
from lab.models import Case, Profile
from lab.models.states import Role
from lab.profiles.analysis.frame_alignment import UnitedTree, align
from lab.profiles.analysis.frame_shifts import compare_profiles, sides_of
from lab.profiles.analysis.frame_tree import FrameTree, build_tree, pack, unpack
from lab.profiles.analysis.share_shifts import Sides, compare
from lab.profiles.analysis.symbol_counts import symbol_counts

NODES, NAMES, SAMPLES = 35_000, 5_500, 150_000
GOAL_MS = 50.0
# Boots of the base, of the candidate, and of other variants that help to tell how boots differ.
DESIGNS = ((3, 3), (6, 3), (5, 5), (4, 2), (6, 3, 3, 3))


def main(
    pages: Annotated[int, typer.Option(help="simulated pages per cell of the table")] = 200,
    real: Annotated[int, typer.Option(help="draws from a case's real base boots")] = 300,
) -> None:
    """Print both tables."""
    _speed()
    _made_pages(pages)
    for line in _real_pages(real):
        print(line)


def _speed() -> None:
    trees = [_made_tree(seed) for seed in range(6)]
    blobs = [pack(tree) for tree in trees]
    two, six = (np.repeat([0, 1], boots) for boots in (1, 3))
    print(
        f"trees of {len(trees[0]):,} nodes, {len(trees[0].names):,} names, {SAMPLES:,} samples; CPU ms, median of 15"
    )
    united = align(trees)
    shifts = compare_profiles(united, sides_of(six, base=0, candidate=1))
    rows: list[tuple[str, Callable[[], object]]] = [
        (f"diff of two: align, compare (goal {GOAL_MS:.0f})", lambda: _diff(trees[:2], two)),
        ("diff of three boots a side", lambda: _diff(trees, six)),
        ("unpack one", lambda: unpack(blobs[0])),
        ("symbols of six boots", lambda: symbol_counts(united)),
        ("a column of q as JSON", lambda: json.dumps(np.round(shifts.shares.q, 6).tolist())),
    ]
    for name, work in rows:
        print(f"  {name:45} {_cpu_ms(work):7.1f}")


def _diff(trees: list[FrameTree], owners: np.ndarray[tuple[int], np.dtype[np.int64]]) -> object:
    # Fresh trees: depth is kept once it is asked for.
    united = align([replace(tree) for tree in trees])
    return compare_profiles(united, sides_of(owners, base=0, candidate=1))


def _cpu_ms(work: Callable[[], object]) -> float:
    took = []
    for _ in range(15):
        start = time.process_time()
        work()
        took.append(1000 * (time.process_time() - start))
    return float(np.median(took))


def _made_tree(seed: int) -> FrameTree:
    """A kernel's size of tree: equal stacks for every seed, other counts."""
    draw = random.Random(1)
    names = [f"function_{number}{'.isra.0' if number % 17 == 0 else ''}" for number in range(NAMES)]
    stacks: list[tuple[str, ...]] = [()]
    nodes: set[tuple[str, ...]] = set()
    while len(nodes) < NODES:
        old = stacks[draw.randrange(len(stacks))]
        fresh = (draw.choice(names) for _ in range(draw.randrange(1, 14)))
        stack = (*old[: draw.randrange(len(old) + 1)], *fresh)[:60]
        stacks.append(stack)
        nodes.update(stack[: depth + 1] for depth in range(len(stack)))
    rng = np.random.default_rng(seed)
    weights = np.random.default_rng(0).pareto(1.2, len(stacks))
    counts = rng.poisson(weights / weights.sum() * SAMPLES) + 1
    return build_tree(zip(stacks, counts.tolist(), strict=True))


def _made_pages(pages: int) -> None:
    print(f"\nmade pages that call a frame, of 100 ({pages} pages each; goal 5)")
    heads = ["/".join(map(str, design)) for design in DESIGNS]
    print(f"  {'boots: base/candidate/others':30}" + "".join(f"{head:>10}" for head in heads))
    for samples in (1_500, 20_000, 150_000):
        for shape in SHAPES:
            rates = [_rate(pages, shape, samples, design) for design in DESIGNS]
            print(
                f"  {samples:8,} samples, {shape:12}" + "".join(f"{rate:10.1f}" for rate in rates), flush=True
            )


def _rate(pages: int, shape: str, samples: int, design: tuple[int, ...]) -> float:
    rng = np.random.default_rng(7)
    sides = Sides(np.repeat(np.arange(len(design)), design), 0, 1)
    called = 0
    for _ in range(pages):
        counts, taken = null_page(rng, shape, samples, sum(design))
        called += bool(compare(counts, taken, sides).certain.any())
    return 100 * called / pages


def _real_pages(draws: int) -> Iterator[str]:
    yield f"\nreal pages of base boots that call anything, of 100 ({draws} draws a row)"
    for case in Case.objects.select_related("experiment").order_by("pk"):
        ground = Profile.objects.filter(
            kind=Profile.Kind.CPU, run__case=case, run__variant__role__in=(Role.BASE, Role.AA)
        )
        trees = [unpack(bytes(profile.tree)) for profile in ground]
        for boots in (3, 5):
            if len(trees) >= 2 * boots + 1:
                frames, anything = _real_rate(align(trees), boots, draws)
                yield (
                    f"  {case.experiment} {case}: {len(trees)} boots, {boots} a side: "
                    f"frames {frames:.1f}, frames, symbols or counts {anything:.1f}"
                )


def _real_rate(tree: UnitedTree, boots: int, draws: int) -> tuple[float, float]:
    rng = np.random.default_rng(3)
    sides = Sides(np.repeat([0, 1], boots), 0, 1)
    frames = anything = 0
    for _ in range(draws):
        own = rng.permutation(tree.own.shape[1])[: 2 * boots]
        page = replace(tree, own=tree.own[:, own], total=tree.total[:, own], resting=tree.resting[:, own])
        shifts = compare_profiles(page, sides)
        counts = symbol_counts(page)
        symbols = compare(np.concatenate((counts.own, counts.total)), page.samples, sides)
        frames += bool(shifts.shares.certain.any())
        anything += any(comparison.certain.any() for comparison in (shifts.shares, shifts.samples, symbols))
    return 100 * frames / draws, 100 * anything / draws


if __name__ == "__main__":
    run(main)
