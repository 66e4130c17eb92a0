# SPDX-License-Identifier: GPL-2.0-or-later
"""Whole kernels after changes that no list of an object's inputs shows: built from nothing, and over the base's layer.

Each kernel has some of the kinds of `bench.tree_changes`, in turn, at places drawn by its number and the seed. What boots, the
modules and System.map must be equal to the bit, whether gcc or the compiler front builds over the layer. A change that adds no
symbol to the kernel from nothing where it should has had no effect. The exit status is 1 if anything differs or had none.

    python -m bench.layer_kernels [--kernels N] [--first N] [--changes N] [--tree NAME] [--home DIR] [--seed N]
"""

import random
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from bench.build_edits import Edit, commit
from bench.built import HOME, Cost, base_request, build, build_base, say
from bench.command import run
from bench.tree_changes import KINDS, Files, change, without_effect
from kernels.builds.builder import BuildRequest
from kernels.builds.front_program import compile_front
from kernels.builds.layers import Layers
from kernels.errors import CompileFailed
from kernels.trees.tree import DEFAULT_ARCHIVES

# By name: over a layer, by the front.
WAYS = {"clean": (False, False), "gcc": (True, False), "front": (True, True)}


def kinds_of(number: int, count: int, seed: int) -> list[str]:
    """Return the kinds of a kernel's changes: the next of a random order, which begins again at its end."""
    order = random.Random(seed).sample(sorted(KINDS), len(KINDS))
    return [order[place % len(order)] for place in range(number * count, (number + 1) * count)]


def main(
    kernels: Annotated[int, typer.Option(help="to build, each three times")] = 3,
    first: Annotated[int, typer.Option(help="begin with this kernel")] = 0,
    changes: Annotated[int, typer.Option(help="of each kernel")] = 5,
    archive: Annotated[str, typer.Option("--tree", help=" or ".join(DEFAULT_ARCHIVES))] = "debian-6.1",
    home: Path = HOME,
    seed: int = 1,
) -> int:
    """Build the kernels, and print a row for each."""
    request = base_request(home, archive)
    objects, _ = (build_base(home, request, front=front) for front in (False, True))
    compile_front(Layers(home).objects / "front")
    print(
        f"| changes | equal | without effect | {' | '.join(f'{way}, CPU s' for way in WAYS)} |\n|---|---|---|{'---|' * len(WAYS)}"
    )
    good = True
    for number in range(first, first + kernels):
        files = Files(request.tree, request.base, objects)
        kinds = kinds_of(number, changes, seed)
        places = change(files, kinds, random.Random(f"{seed} {number}"))
        say(f"{number}: {places}")
        patched = replace(
            request, revision=commit(request.tree, request.base, Edit(f"kernel-{number}", files.changed))
        )
        costs = {way: _build(home, patched, way) for way in WAYS}
        boots = {cost.boots if cost else None for cost in costs.values()}
        clean = costs["clean"]
        idle = without_effect(kinds, places, clean.marks) if clean else []
        good &= len(boots) == 1 and not idle
        result = ("no kernel compiles" if boots == {None} else "yes") if len(boots) == 1 else "NO"
        shown = "; ".join(f"{kind}: {place}" for kind, place in places.items())
        figures = " | ".join(f"{cost.cpu:.0f}" if cost else "does not compile" for cost in costs.values())
        print(f"| {shown} | {result} | {', '.join(idle)} | {figures} |", flush=True)
    return int(not good)


def _build(home: Path, request: BuildRequest, way: str) -> Cost | None:
    layered, front = WAYS[way]
    try:
        cost = build(home, request, layered=layered, front=front)
    except CompileFailed as failure:
        say(f"    {way}: {failure}")
        return None
    say(f"    {way}: {cost.cpu:.0f} CPU s, {cost.boots[:12]}, {cost.written} objects written{cost.note}")
    return cost


if __name__ == "__main__":
    run(main)
