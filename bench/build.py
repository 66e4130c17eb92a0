# SPDX-License-Identifier: GPL-2.0-or-later
"""The cost of a variant's build: from nothing, with a hot ccache, over the layer of its base, and by the compiler front over it.

All run in the same sandbox at the same paths with the same flags, in random order for each edit. The first three must
make the same vmlinux to the bit. The front leaves gcc's entries for functions out of the debugging information, so its
vmlinux.boot and modules are compared without the release, which is part of every key, and the build id; System.map as it is.
ccache is at its best: primed by a build of the base at the very path. CPU is user plus system of everything started, with
the work outside the sandbox.

Over a layer, the objects that make wrote or that the sweep gave a new time are counted beside those that truly differ from the
base's, line tables aside, with the CPU seconds that gcc takes for these. "Beside" is what a small compilation took meanwhile, on average: the machine's speed
changes within an hour by more than what is compared.

    python -m bench.build [--edits NAME,...] [--ways NAME,...] [--commits N] [--clean-every N] [--tree debian-6.1] [--home DIR] [--seed N]

A row takes 20 to 50 CPU minutes with all four ways, and each base as much once.
"""

import hashlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from bench.build_edits import SWITCHES, Edit, commit, edits, names, series
from bench.build_reach import reach
from bench.built import HOME, Cost, base_request, build, build_base, say
from bench.command import run as run_benchmark
from bench.speed import cpu_seconds
from kernels.artifacts.store import sha256_of
from kernels.builds import kbuild
from kernels.builds.builder import Builder, BuildRequest
from kernels.builds.front_program import compile_front
from kernels.builds.layers import Layers, over_base, own_directory
from kernels.builds.request import local_version
from kernels.configs.request import Fragment
from kernels.errors import CompileFailed
from kernels.files.scratch import scratch
from kernels.sandbox.command import Layer, Limits, SandboxPlace, run
from kernels.trees.tree import DEFAULT_ARCHIVES, NamedRevision

WAYS = ("clean", "ccache", "ours", "front")
CCACHE_SCRIPT = """set -e
cores=$1; shift
make -C /build/linux O=/build/obj --no-print-directory -j "$cores" "$@" all
"""


def main(
    wanted: Annotated[str, typer.Option("--edits", help=f"some of {', '.join(names())}")] = ",".join(names()),
    ways: Annotated[str, typer.Option(help=f"some of {', '.join(WAYS)}")] = ",".join(WAYS),
    commits: Annotated[int, typer.Option(help="of a made series, one after the other")] = 10,
    clean_every: Annotated[int, typer.Option(help="of these commits, which are also built from nothing")] = 1,
    archive: Annotated[str, typer.Option("--tree", help=" or ".join(DEFAULT_ARCHIVES))] = "debian-6.1",
    seed: int = 1,
    home: Path = HOME,
) -> int:
    """Run the comparison and print it as a table; 1 if anything differs or a base was touched."""
    chosen = _some_of(WAYS, ways)
    if "ccache" in chosen and shutil.which("ccache", path="/usr/bin") is None:
        print("bench: ccache is missing; run: apt-get install ccache", file=sys.stderr)
        return 2
    request = base_request(home, archive)
    over = [way for way in chosen if way != "clean"] or chosen
    layers = {front: build_base(home, request, front=front) for front in sorted({w == "front" for w in over})}
    if "front" in chosen:
        # Once a machine, and no part of a build's cost.
        compile_front(Layers(home).objects / "front")
    before = {path: _digest(path) for path in layers.values()}
    generator = random.Random(seed)
    primed = _primed(home, request) if "ccache" in chosen else home
    _head(chosen)
    same = True
    for edit in edits(
        _some_of(names(), wanted), request.tree, request.base, next(iter(layers.values())), generator
    ):
        say(f"{edit.name}: {', '.join(edit.files)}")
        patched = _patched(request, edit)
        costs = _costs(home, patched, chosen, generator, primed)
        same &= _equal(costs)
        _row(home, request, edit.name, costs, chosen)
    if commits:
        _forget_series(home, layers.values())
    made = series(commits, request.tree, request.base, next(iter(layers.values())), generator)
    same &= _built_in_turn(home, request, made, chosen, clean_every)
    touched = any(_digest(path) != digest for path, digest in before.items())
    print(
        f"\nThe object directories of the bases are {'CHANGED' if touched else 'unchanged'}, names, times and bytes."
    )
    return int(touched or not same)


def _built_in_turn(
    home: Path,
    request: BuildRequest,
    made: Iterable[tuple[Edit, NamedRevision]],
    ways: Sequence[str],
    clean_every: int,
) -> bool:
    """Build commits one after the other, each a base of its own, and print their rows; return whether the ways agree."""
    alone_ways, same = [way for way in ways if way in ("clean", "front")], True
    for number, (edit, revision) in enumerate(made):
        say(f"{edit.name}: {', '.join(edit.files)}")
        # By the front over the layer of the revision before.
        alone = replace(request, base=revision, revision=revision)
        ways_now = [way for way in alone_ways if way != "clean" or number % clean_every == 0]
        costs = {way: build(home, alone, layered=way == "front", front=way == "front") for way in ways_now}
        same &= _equal(costs)
        _row(home, alone, edit.name, costs, alone_ways)
    return same


def _forget_series(home: Path, bases: Iterable[Path]) -> None:
    """Remove the layers of an earlier run's commits: one of them would be nearer than the commit before."""
    kept = {objects.parent for objects in bases}
    for path in home.glob("objects/*/revision.json"):
        if path.parent not in kept:
            shutil.rmtree(path.parent)


def _patched(request: BuildRequest, edit: Edit) -> BuildRequest:
    """Return the request of an edit over the base: another revision, or its own in another config."""
    if edit.name not in SWITCHES:
        return replace(request, revision=commit(request.tree, request.base, edit))
    switched = (*request.config.fragments, Fragment(edit.name, SWITCHES[edit.name]))
    config = replace(request.config, fragments=switched)
    return replace(request, config=config, base_config=request.config)


def _some_of(known: Sequence[str], text: str) -> list[str]:
    chosen = [name for name in text.split(",") if name]
    if unknown := [name for name in chosen if name not in known]:
        raise typer.BadParameter(f"{unknown[0]!r} is none of {', '.join(known)}")
    return chosen


def _primed(home: Path, request: BuildRequest) -> Path:
    """A ccache that has seen a build of the base and nothing else; made once."""
    key = Builder(home).key(request)
    place = home / f"ccache-{key[:12]}"
    partial_place = place.with_suffix(".partial")
    if not place.is_dir():
        say("priming ccache with the base")
        if not partial_place.is_dir():  # an interrupted run left what it had compiled: still the base's
            own_directory(partial_place)
        cost = _with_ccache(home, partial_place, request, key)
        say(f"    {cost.cpu:.1f} CPU s")
        partial_place.rename(place)
    return place


def _costs(
    home: Path, patched: BuildRequest, ways: list[str], generator: random.Random, primed: Path
) -> dict[str, Cost]:
    with tempfile.TemporaryDirectory(dir=home) as folder:
        cache = Path(folder) / "ccache"
        if "ccache" in ways:
            # Its own copy, so that one edit does not warm the cache for the next.
            subprocess.run(["cp", "-a", str(primed), str(cache)], check=True, timeout=600)
        builds: dict[str, Callable[[], Cost]] = {
            "clean": partial(build, home, patched, layered=False),
            "ccache": partial(_with_ccache, home, cache, patched, Builder(home).key(patched)),
            "ours": partial(build, home, patched),
            "front": partial(build, home, patched, front=True),
        }
        costs = {}
        for way in generator.sample(ways, len(ways)):
            costs[way] = builds[way]()
            say(f"    {way} {costs[way].cpu:.1f} CPU s, {costs[way].small:.3f} beside{costs[way].note}")
    return costs


def _with_ccache(home: Path, cache: Path, request: BuildRequest, key: str) -> Cost:
    """The same make with ccache before the compiler, in an empty object directory."""
    layers = Layers(home)
    base_id, tree_id = request.base.tree_id, request.revision.tree_id
    limits = Limits()
    with (
        cpu_seconds() as used,
        scratch(layers.scratch) as own,
        layers.source(request.tree, base_id, lambda: None) as lower,
    ):
        objects = own_directory(own / "obj")
        (own / "work").mkdir()
        shutil.copy(Builder(home).build(replace(request, revision=request.base)).config, objects / ".config")
        os.chmod(objects / ".config", 0o666)  # noqa: PTH101
        source = over_base(request.tree, lower, base_id, tree_id, own / "source")
        flags = (*kbuild.FLAGS, f"CC=ccache {request.toolchain.cc}", f"LOCALVERSION={local_version(key)}")
        lines: list[str] = []
        ended = run(
            ["sh", "-c", CCACHE_SCRIPT, "sh", str(limits.cores), *flags],
            SandboxPlace(source, Layer(objects), cache, own / "work"),
            {**kbuild.ENVIRONMENT, "CCACHE_DIR": "/build/out", "CCACHE_MAXSIZE": "10G"},
            limits,
            on_line=lines.append,
        )
        if ended.status != 0:
            raise CompileFailed(f"the ccache build failed: {kbuild.first_error(lines)}", log=Path(os.devnull))
        sha256 = sha256_of(objects / "vmlinux")
    return Cost(used.seconds, used.small, sha256)


def _digest(folder: Path) -> str:
    """Names, times and bytes of everything in an object directory."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            digest.update(f"{path} {path.stat().st_mtime_ns} {sha256_of(path)}\n".encode())
    return digest.hexdigest()


def _equal(costs: dict[str, Cost]) -> bool:
    """Return whether gcc's ways made the same vmlinux, and all of the product's boot the same."""
    by_gcc = {cost.vmlinux for way, cost in costs.items() if way != "front"}
    return len(by_gcc) <= 1 and len({cost.boots for cost in costs.values() if cost.boots}) <= 1


def _result(home: Path, request: BuildRequest, costs: dict[str, Cost]) -> str:
    """Return whether the ways agree, and of the last that has a layer the objects over it, with gcc's time for the changed ones."""
    agree = "not compared" if len(costs) == 1 else "identical" if _equal(costs) else "DIFFERS"
    result = agree
    last = next((cost for cost in reversed(costs.values()) if cost.written), None)
    if last and last.layer:
        used = reach(home, request, last.layer, last.changed)
        result += f"; {last.written} over the layer, {len(last.changed)} changed: {used.seconds:.0f} by gcc, {used.small:.3f} beside"
    return result


def _head(ways: list[str]) -> None:
    print(
        f"\nCPU seconds of each edit, and the share of the first of {', '.join(ways)}; in brackets the share at equal speed:\n"
    )
    print(f"| edit | {' | '.join(ways)} | shares | result |\n|---|{'---|' * len(ways)}---|---|", flush=True)


def _row(home: Path, request: BuildRequest, name: str, costs: dict[str, Cost], ways: list[str]) -> None:
    figures = " | ".join(f"{costs[way].cpu:.1f}" if way in costs else "" for way in ways)
    first = costs.get(ways[0])
    shares = ", ".join(
        f"{way} {costs[way].cpu / first.cpu:.1%} ({costs[way].units / first.units:.1%})"
        for way in ways[1:]
        if first and way in costs
    )
    print(f"| {name} | {figures} | {shares} | {_result(home, request, costs)} |", flush=True)


if __name__ == "__main__":
    run_benchmark(main)
