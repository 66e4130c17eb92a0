# SPDX-License-Identifier: GPL-2.0-or-later
"""The cost of a variant's build: from nothing, with a hot ccache, and over the layer of its base.

All three run in the same sandbox at the same paths with the same flags, in random order for each
patch, and must make the same vmlinux. ccache is at its best: primed by a build of the base at the very
path. CPU is user plus system of everything started, for ours with the work outside the sandbox.

    python -m bench.build [--patches N] [--tree debian-6.1] [--home DIR] [--seed N]

A patch takes some 15 CPU minutes, most of it for the two peers; priming as much once.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from kernels.artifacts.store import ArtifactStore
from kernels.builds import kbuild
from kernels.builds.builder import Builder, BuildRequest
from kernels.builds.layers import Layers, over_base, own_directory
from kernels.builds.request import local_version
from kernels.builds.toolchain import detect_toolchain
from kernels.configs.request import ConfigRequest, load_fragment
from kernels.errors import CompileFailed
from kernels.files.scratch import scratch
from kernels.sandbox.command import Layer, Limits, SandboxPlace, run
from kernels.trees.git import COMMITTER, git_command, git_environment
from kernels.trees.tree import DEFAULT_ARCHIVES, NamedRevision, SourceTree, import_archive, read_file, resolve

HEADER = "include/linux/fs.h"
FIELD = re.compile(r"^\tvoid\s+\*i_private;.*$", re.MULTILINE)
# Directories whose files any of our stories might touch.
FOLDERS = ("fs", "fs/ext4", "fs/kernfs", "mm", "kernel/locking", "kernel/sched", "block", "net/core")
# One file, the header, then up to three files: so that a short run has both kinds.
FILE_COUNTS = (1, 0, 3, 2, 1, 3)
CCACHE_SCRIPT = """set -e
cores=$1; shift
make -C /build/linux O=/build/obj --no-print-directory -j "$cores" "$@" all
"""
_HEAD = """
The base from nothing: {base:.0f} CPU s. CPU seconds of each variant:

| changed files | clean | hot ccache | ours | ours / clean | ccache / ours | vmlinux |
|---|---|---|---|---|---|---|"""


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU seconds of one build, and the hash of the vmlinux it made."""

    cpu: float
    sha256: str


@dataclass(frozen=True, slots=True)
class Row:
    """One patch built three times."""

    files: tuple[str, ...]
    clean: Cost
    ccache: Cost
    ours: Cost

    @property
    def identical(self) -> bool:
        """Return whether all three made the same bytes."""
        return self.clean.sha256 == self.ccache.sha256 == self.ours.sha256


def main() -> int:
    """Run the comparison and print it as a table; 1 if any vmlinux differs or the base was touched."""
    options = _options()
    home = Path(options.home)
    if shutil.which("ccache", path="/usr/bin") is None:
        print("bench: ccache is missing; run: apt-get install ccache", file=sys.stderr)
        return 2
    tree = import_archive(options.tree, DEFAULT_ARCHIVES[options.tree], home / "trees")
    base = resolve(tree, "")
    config = ConfigRequest("tiny", (load_fragment("guest"),))
    request = BuildRequest(tree, base, base, config, detect_toolchain())
    builder = Builder(home)
    _say("building the base")
    artifact = builder.build(request, on_progress=_follow)
    objects = builder.layer_of(request)
    if not objects.is_dir():
        builder.artifacts.remove(artifact.key)
        builder.build(request, on_progress=_follow)
    generator = random.Random(options.seed)
    edits = [_edit(tree, base, objects, count, generator) for count in FILE_COUNTS[: options.patches]]
    before = _digest(objects)
    primed = _primed(home, request, artifact.key)
    print(_HEAD.format(base=artifact.metadata.seconds_cpu), flush=True)
    identical = True
    for number, edit in enumerate(edits, start=1):
        _say(f"patch {number} of {len(edits)}: {', '.join(edit)}")
        row = _compare(home, request, edit, generator, primed)
        identical &= row.identical
        print(_line(row), flush=True)
    touched = _digest(objects) != before
    print(
        f"\nThe base's object directory is {'CHANGED' if touched else 'unchanged'}, names, times and bytes."
    )
    return int(touched or not identical)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.build", description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--patches", type=int, default=len(FILE_COUNTS), choices=range(1, len(FILE_COUNTS) + 1)
    )
    parser.add_argument("--tree", default="debian-6.1", choices=sorted(DEFAULT_ARCHIVES))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--home", default=str(Path(tempfile.gettempdir()) / "kperflab-bench-build"))
    return parser.parse_args()


def _edit(
    tree: SourceTree, base: NamedRevision, objects: Path, count: int, generator: random.Random
) -> dict[str, bytes]:
    """The new contents of `count` compiled .c files, or of the header for 0."""
    if count == 0:
        text = read_file(tree, base.tree_id, HEADER).decode()
        changed, found = FIELD.subn("\tunsigned long\t\ti_kperflab;\n\\g<0>", text)
        if found != 1:
            raise SystemExit(f"bench: {HEADER} of {tree.name} has no i_private to put a field before")
        return {HEADER: changed.encode()}
    compiled = [path for folder in FOLDERS for path in sorted((objects / folder).glob("*.o"))]
    names = [str(path.relative_to(objects).with_suffix(".c")) for path in compiled]
    shuffled = generator.sample(names, len(names))
    picked = itertools.islice((name for name in shuffled if _in_tree(tree, base, name)), count)
    return {name: read_file(tree, base.tree_id, name) + _function(generator) for name in picked}


def _in_tree(tree: SourceTree, base: NamedRevision, name: str) -> bool:
    command = git_command(f"--git-dir={tree.repository}", "cat-file", "-e", f"{base.tree_id}:{name}")
    return subprocess.run(command, capture_output=True, check=False, timeout=60).returncode == 0


def _function(generator: random.Random) -> bytes:
    """A function nobody calls: it compiles at the end of any file, and moves all code linked after it."""
    name = f"kperflab_bench_{generator.randrange(1 << 32):08x}"
    factor = generator.randrange(3, 1000)
    return (
        f"\nint {name}(int value);\nint {name}(int value)\n{{\n\treturn value * {factor} + 1;\n}}\n".encode()
    )


def _commit(tree: SourceTree, base: NamedRevision, edit: dict[str, bytes]) -> NamedRevision:
    with tempfile.TemporaryDirectory() as folder:
        environment = git_environment({**COMMITTER, "GIT_INDEX_FILE": f"{folder}/index"})

        def git(*arguments: str, data: bytes = b"") -> str:
            command = git_command(f"--git-dir={tree.repository}", *arguments)
            done = subprocess.run(
                command, env=environment, input=data, capture_output=True, check=True, timeout=60
            )
            return done.stdout.decode().strip()

        git("read-tree", base.tree_id)
        for name, data in edit.items():
            git(
                "update-index",
                "--cacheinfo",
                f"100644,{git('hash-object', '-w', '--stdin', data=data)},{name}",
            )
        tree_id = git("write-tree")
        return NamedRevision(git("commit-tree", tree_id, "-p", base.commit, "-m", "bench"), tree_id, "bench")


def _primed(home: Path, request: BuildRequest, base_key: str) -> Path:
    """A ccache that has seen a build of the base and nothing else; made once."""
    place = home / f"ccache-{base_key[:12]}"
    partial_place = place.with_suffix(".partial")
    if not place.is_dir():
        _say("priming ccache with the base")
        if not partial_place.is_dir():  # an interrupted run left what it had compiled: still the base's
            own_directory(partial_place)
        cost = _with_ccache(home, partial_place, request, base_key)
        _say(f"    {cost.cpu:.1f} CPU s")
        partial_place.rename(place)
    return place


def _compare(
    home: Path, request: BuildRequest, edit: dict[str, bytes], generator: random.Random, primed: Path
) -> Row:
    patched = replace(request, revision=_commit(request.tree, request.base, edit))
    key = Builder(home).key(patched)
    with tempfile.TemporaryDirectory(dir=home) as folder:
        # Its own copy, so that one patch does not warm the cache for the next.
        cache = Path(folder) / "ccache"
        subprocess.run(["cp", "-a", str(primed), str(cache)], check=True, timeout=600)
        ways: dict[str, Callable[[], Cost]] = {
            "clean": partial(_by_builder, home, patched, layered=False),
            "ccache": partial(_with_ccache, home, cache, patched, key),
            "ours": partial(_by_builder, home, patched, layered=True),
        }
        costs = {}
        for name in generator.sample(sorted(ways), len(ways)):
            costs[name] = ways[name]()
            _say(f"    {name} {costs[name].cpu:.1f} CPU s")
    return Row(tuple(edit), costs["clean"], costs["ccache"], costs["ours"])


def _by_builder(home: Path, request: BuildRequest, *, layered: bool) -> Cost:
    """Through the builder, into a store that is empty: everything is built."""
    with tempfile.TemporaryDirectory(dir=home) as store, _outside() as outside:
        builder = Builder(home, artifacts=ArtifactStore(Path(store)), layered=layered)
        artifact = builder.build(request, on_progress=_follow)
        sha256 = _sha256(artifact.vmlinux)
        cpu = artifact.metadata.seconds_cpu
    return Cost(cpu + outside[0], sha256)


def _with_ccache(home: Path, cache: Path, request: BuildRequest, key: str) -> Cost:
    """The same make with ccache before the compiler, in an empty object directory."""
    layers = Layers(home)
    base_id, tree_id = request.base.tree_id, request.revision.tree_id
    limits = Limits()
    with (
        _outside() as outside,
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
        sha256 = _sha256(objects / "vmlinux")
    return Cost(ended.cpu_seconds + outside[0], sha256)


@contextmanager
def _outside() -> Iterator[list[float]]:
    """CPU seconds that we and git, mount and the like use meanwhile: what the sandbox does not count."""
    used = [0.0]
    start = _used()
    yield used
    used[0] = _used() - start


def _used() -> float:
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _digest(folder: Path) -> str:
    """Names, times and bytes of everything in an object directory."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            digest.update(f"{path} {path.stat().st_mtime_ns} {_sha256(path)}\n".encode())
    return digest.hexdigest()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _line(row: Row) -> str:
    share, factor = row.ours.cpu / row.clean.cpu, row.ccache.cpu / row.ours.cpu
    costs = " | ".join(f"{cost.cpu:.1f}" for cost in (row.clean, row.ccache, row.ours))
    same = "identical" if row.identical else "DIFFERS"
    return f"| {', '.join(row.files)} | {costs} | {share:.1%} | {factor:.1f} | {same} |"


def _say(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)


def _follow(done: int, expected: int) -> None:
    if sys.stderr.isatty() and expected:
        print(f"\r    {done} of {expected} ", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
