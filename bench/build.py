# SPDX-License-Identifier: GPL-2.0-or-later
"""The cost of a variant's build: from nothing, with a hot ccache, over the layer of its base, and by the compiler front over it.

All run in the same sandbox at the same paths with the same flags, in random order for each edit. The first three must
make the same vmlinux to the bit. The front leaves gcc's entries for functions out of the debugging information, so its
vmlinux.boot and modules are compared without the release, which is part of every key, and the build id; System.map as it is.
ccache is at its best: primed by a build of the base at the very path. CPU is user plus system of everything started, with
the work outside the sandbox.

Over a layer, the objects that make wrote or that the sweep gave a new time are counted beside those that truly differ from the
base's, line tables aside, with the CPU seconds that gcc takes for these.

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
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from bench.build_edits import SWITCHES, Edit, commit, edits, names, series
from bench.build_reach import reach
from bench.command import run as run_benchmark
from bench.command import spent
from kernels.artifacts.elf_sections import NOTE, sections
from kernels.artifacts.elf_segments import without_build_id
from kernels.artifacts.store import Artifact, ArtifactStore, sha256_of
from kernels.builds import kbuild
from kernels.builds.builder import Builder, BuildRequest
from kernels.builds.front_program import compile_front
from kernels.builds.layers import Layers, over_base, own_directory
from kernels.builds.request import local_version
from kernels.builds.structures import FinishedBuild
from kernels.builds.toolchain import detect_toolchain
from kernels.configs.request import ConfigRequest, Fragment, load_fragment
from kernels.errors import CompileFailed
from kernels.files.scratch import scratch
from kernels.sandbox.command import Layer, Limits, SandboxPlace, run
from kernels.trees.tree import DEFAULT_ARCHIVES, NamedRevision, import_archive, resolve

WAYS = ("clean", "ccache", "ours", "front")
HOME = Path(tempfile.gettempdir()) / "kperflab-bench-build"
CCACHE_SCRIPT = """set -e
cores=$1; shift
make -C /build/linux O=/build/obj --no-print-directory -j "$cores" "$@" all
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU seconds of one build, the hash of the vmlinux it made, and that of what boots ("" where a way makes none).

    written, changed: over a layer, the objects that make wrote or that the sweep gave a new time, and those of them that differ
    in more than line tables.
    reach: CPU seconds of gcc for the base's objects that changed.
    """

    cpu: float
    vmlinux: str
    boots: str = ""
    note: str = ""
    written: int = 0
    changed: int = 0
    reach: float = 0.0


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
    tree = import_archive(archive, DEFAULT_ARCHIVES[archive], home / "trees")
    base = resolve(tree, "")
    config = ConfigRequest("tiny", (load_fragment("guest"),))
    # The tree is Debian's own source package: what the base compiles may answer every later build.
    request = BuildRequest(tree, base, base, config, detect_toolchain(), trusted=True)
    over = [way for way in chosen if way != "clean"] or chosen
    layers = {front: _base(home, request, front=front) for front in sorted({w == "front" for w in over})}
    if "front" in chosen:
        # Once a machine, and no part of a build's cost.
        compile_front(Layers(home).objects / "front")
    before = {path: _digest(path) for path in layers.values()}
    generator = random.Random(seed)
    primed = _primed(home, request) if "ccache" in chosen else home
    _head(chosen)
    same = True
    for edit in edits(_some_of(names(), wanted), tree, base, next(iter(layers.values())), generator):
        _say(f"{edit.name}: {', '.join(edit.files)}")
        patched = _patched(request, edit)
        costs = _costs(home, patched, chosen, generator, primed)
        same &= _equal(costs)
        _row(edit.name, costs, chosen)
    made = series(commits, tree, base, next(iter(layers.values())), generator)
    same &= _built_in_turn(home, request, made, chosen, clean_every, layers.values())
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
    bases: Iterable[Path],
) -> bool:
    """Build commits one after the other, each a base of its own, and print their rows; return whether the ways agree."""
    _forget_series(home, bases)
    alone_ways, same = [way for way in ways if way in ("clean", "front")], True
    for number, (edit, revision) in enumerate(made):
        _say(f"{edit.name}: {', '.join(edit.files)}")
        # By the front over the layer of the revision before.
        alone = replace(request, base=revision, revision=revision)
        ways_now = [way for way in alone_ways if way != "clean" or number % clean_every == 0]
        costs = {
            way: _by_builder(home, alone, layered=way == "front", front=way == "front") for way in ways_now
        }
        same &= _equal(costs)
        _row(edit.name, costs, alone_ways)
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


def _base(home: Path, request: BuildRequest, *, front: bool) -> Path:
    """Build the base where its layer is not there, print what it cost, and return its object directory."""
    builder = Builder(home, front=front)
    objects = builder.layer_of(request)
    _say(f"the base{', by the front with an empty store' if front else ''}")
    artifact = builder.build(request, on_progress=_follow)
    if not objects.is_dir():
        builder.artifacts.remove(artifact.key)
        artifact = builder.build(request, on_progress=_follow)
    how = "by the front with an empty store" if front else "by gcc"
    print(
        f"The base from nothing {how}: {artifact.metadata.seconds_cpu:.0f} CPU s; what boots is {_boots(artifact)[:12]}.",
        flush=True,
    )
    return objects


def _primed(home: Path, request: BuildRequest) -> Path:
    """A ccache that has seen a build of the base and nothing else; made once."""
    key = Builder(home).key(request)
    place = home / f"ccache-{key[:12]}"
    partial_place = place.with_suffix(".partial")
    if not place.is_dir():
        _say("priming ccache with the base")
        if not partial_place.is_dir():  # an interrupted run left what it had compiled: still the base's
            own_directory(partial_place)
        cost = _with_ccache(home, partial_place, request, key)
        _say(f"    {cost.cpu:.1f} CPU s")
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
            "clean": partial(_by_builder, home, patched, layered=False),
            "ccache": partial(_with_ccache, home, cache, patched, Builder(home).key(patched)),
            "ours": partial(_by_builder, home, patched),
            "front": partial(_by_builder, home, patched, front=True),
        }
        costs = {}
        for way in generator.sample(ways, len(ways)):
            costs[way] = builds[way]()
            _say(f"    {way} {costs[way].cpu:.1f} CPU s{costs[way].note}")
    return costs


def _by_builder(home: Path, request: BuildRequest, *, layered: bool = True, front: bool = False) -> Cost:
    """Through the builder, into a store that is empty: everything is built."""
    with tempfile.TemporaryDirectory(dir=home) as folder:
        store, written = ArtifactStore(Path(folder) / "store"), Written(Path(folder) / "written")
        with _used() as used:
            builder = Builder(home, artifacts=store, layered=layered, front=front, on_built=written.keep)
            artifact = builder.build(request, on_progress=_follow)
        vmlinux, boots = sha256_of(artifact.vmlinux), _boots(artifact)
        note = ", ".join(f"{count} {event}" for event, count in sorted(builder.front_events.items()))
        changed = written.changed()
        reached = reach(home, request, written.base, changed) if changed else 0.0
        return Cost(used[0], vmlinux, boots, note and f" ({note})", len(written.pairs), len(changed), reached)


class Written:
    """The objects that a build wrote over its base's layer. They are compared when the build's cost is known."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self.base = place
        self.pairs: list[tuple[Path, Path]] = []

    def keep(self, built: FinishedBuild) -> None:
        """Link what was written, each beside the base's own object."""
        if not (upper := built.objects.upper):
            return
        self.base = built.objects.lower
        for path in upper.rglob("*.o"):
            base = built.objects.lower / path.relative_to(upper)
            if path.is_file() and base.is_file() and not path.name.startswith((".", "vmlinux")):
                kept = self._place / path.relative_to(upper)
                kept.parent.mkdir(parents=True, exist_ok=True)
                kept.hardlink_to(path)
                self.pairs.append((kept, base))

    def changed(self) -> list[str]:
        """Return those that differ from the base's in more than line tables."""
        return [
            str(base.relative_to(self.base))
            for kept, base in self.pairs
            if _without_lines(kept) != _without_lines(base)
        ]


def _without_lines(path: Path) -> bytes:
    with tempfile.NamedTemporaryFile() as stripped:
        subprocess.run(["objcopy", "--strip-debug", str(path), stripped.name], check=True, timeout=60)
        return Path(stripped.name).read_bytes()


def _boots(artifact: Artifact) -> str:
    """Return a hash of vmlinux.boot, the modules and System.map, the release and the linker's build ids blanked."""
    digest = hashlib.sha256(artifact.system_map.read_bytes())
    release = artifact.metadata.release.encode()
    for path in [artifact.boot_vmlinux, *sorted((artifact.directory / "modules").glob("*"))]:
        with tempfile.NamedTemporaryFile() as stripped:
            # A module carries its line tables; vmlinux.boot has none.
            Path(stripped.name).write_bytes(_without_lines(path))
            data = bytearray(Path(stripped.name).read_bytes())
            for section in sections(Path(stripped.name)):
                if section.kind == NOTE:
                    end = section.offset + len(section.data)
                    data[section.offset : end] = without_build_id(bytes(section.data))
        digest.update(f"{path.name} {len(data)}\n".encode() + data.replace(release, b"-" * len(release)))
    return digest.hexdigest()


def _with_ccache(home: Path, cache: Path, request: BuildRequest, key: str) -> Cost:
    """The same make with ccache before the compiler, in an empty object directory."""
    layers = Layers(home)
    base_id, tree_id = request.base.tree_id, request.revision.tree_id
    limits = Limits()
    with (
        _used() as used,
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
    return Cost(used[0], sha256)


@contextmanager
def _used() -> Iterator[list[float]]:
    """CPU seconds used meanwhile, by this process and by all that ended: the sandbox and what it started among them."""
    used = [-spent(own=True)]
    yield used
    used[0] += spent(own=True)


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


def _result(costs: dict[str, Cost]) -> str:
    """Return whether the ways agree, and the objects over the layer of the last of them that has one."""
    agree = "not compared" if len(costs) == 1 else "identical" if _equal(costs) else "DIFFERS"
    over = [
        f"{cost.written} over the layer, {cost.changed} changed: {cost.reach:.0f} by gcc"
        for cost in costs.values()
        if cost.written
    ]
    return "; ".join([agree, *over[-1:]])


def _head(ways: list[str]) -> None:
    print(f"\nCPU seconds of each edit, and the share of the first of {', '.join(ways)}:\n")
    print(f"| edit | {' | '.join(ways)} | shares | result |\n|---|{'---|' * len(ways)}---|---|", flush=True)


def _row(name: str, costs: dict[str, Cost], ways: list[str]) -> None:
    figures = " | ".join(f"{costs[way].cpu:.1f}" if way in costs else "" for way in ways)
    first = costs.get(ways[0])
    shares = ", ".join(
        f"{way} {costs[way].cpu / first.cpu:.1%}" for way in ways[1:] if first and way in costs
    )
    print(f"| {name} | {figures} | {shares} | {_result(costs)} |", flush=True)


def _say(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)


def _follow(done: int, expected: int) -> None:
    if sys.stderr.isatty() and expected:
        print(f"\r    {done} of {expected} ", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    run_benchmark(main)
