# SPDX-License-Identifier: GPL-2.0-or-later
"""Measure the cost of the build sandbox: the CPU time of compiling one file in it, beside the same compiler without it.

Both are a shell that compiles the file a number of times, right after each other in random order, pair by pair; the ratio
is that of each pair, its median and range are shown. Ours counts everything: our own process, unshare, bwrap, the filter of system
calls, and the count of what is written. `files` 1 holds the whole set-up of a sandbox against one file, which no build does.

    python -m bench.sandbox [--source FILE.i] [--pairs N] [--files N] [--seed N]

Without a preprocessed file of a kernel, C code of about its size is made: a kernel's typical file is 60,000 lines of headers and
a thousand of code. The goal is a ratio of at most 1.02.
"""

import random
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from bench.command import run as run_benchmark
from bench.command import spent
from kernels.processes.environment import minimal
from kernels.sandbox.command import NICE, Layer, Limits, SandboxPlace, build_owner, run

GOAL = 1.02
FILES = 10
SCRIPT = 'for n in $(seq "$1"); do gcc -std=gnu11 -O2 -w -c "$2" -o "$3" || exit 1; done'
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TMPDIR": "/tmp"}


def main(
    preprocessed: Annotated[Path | None, typer.Option("--source")] = None,
    pairs: int = 9,
    count: Annotated[int, typer.Option("--files")] = FILES,
    seed: int = 1,
) -> int:
    """Measure, print a line for each number of files; returns 1 where the larger build misses the goal."""
    generator = random.Random(seed)
    ratio = 0.0
    with tempfile.TemporaryDirectory() as folder:
        place = _place(Path(folder))
        source = place.source.lower / "file.i"
        source.write_bytes(preprocessed.read_bytes() if preprocessed else _made().encode())
        source.chmod(0o644)
        print(f"{source.stat().st_size >> 10} KiB of preprocessed C, {pairs} pairs each, CPU seconds\n")
        print("| files | bare | sandbox | ratio, median | range |\n|---|---|---|---|---|")
        for files in (1, count):
            costs = [_pair(files, source, place, generator) for _ in range(pairs)]
            ratios = [ours / bare for bare, ours in costs]
            bare, ours = (statistics.median(side) for side in zip(*costs, strict=True))
            ratio = statistics.median(ratios)
            print(
                f"| {files} | {bare:.2f} | {ours:.2f} | {ratio:.3f} | {min(ratios):.3f} to {max(ratios):.3f} |",
                flush=True,
            )
    print(f"\nThe goal for a build of {count} files is {GOAL}: {'met' if ratio <= GOAL else 'missed'}.")
    return int(ratio > GOAL)


def _pair(files: int, source: Path, place: SandboxPlace, generator: random.Random) -> tuple[float, float]:
    """The CPU seconds of the bare compiler and of the sandbox, in random order."""
    ways = {"bare": lambda: _bare(files, source), "ours": lambda: _ours(files, place)}
    costs = {name: ways[name]() for name in generator.sample(sorted(ways), 2)}
    return costs["bare"], costs["ours"]


def _bare(files: int, source: Path) -> float:
    """As the same user, at the same priority, without the sandbox."""
    uid, gid = build_owner()
    command = ["setpriv", "--reuid", str(uid), "--regid", str(gid), "--clear-groups", "--"]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        before = spent(own=True)
        shell = ["nice", f"-n{NICE}", "sh", "-c", SCRIPT, "sh", str(files), str(source), f"{folder}/file.o"]
        subprocess.run([*command, *shell], check=True, env=minimal() | ENVIRONMENT, timeout=3600)
        return spent(own=True) - before


def _ours(files: int, place: SandboxPlace) -> float:
    before = spent(own=True)
    command = ["sh", "-c", SCRIPT, "sh", str(files), "/build/linux/file.i", "/build/obj/file.o"]
    ended = run(command, place, ENVIRONMENT, Limits())
    if ended.status:
        raise SystemExit(f"bench: the compiler ended with status {ended.status} in the sandbox")
    outside = spent(own=True) - before
    # A process that was collected by one of ours is counted there; what ran in the sandbox tells its own time.
    return outside if outside > ended.cpu_seconds else outside + ended.cpu_seconds


def _place(folder: Path) -> SandboxPlace:
    folder.chmod(0o755)
    for name in ("source", "objects", "out", "work"):
        (folder / name).mkdir()
        (folder / name).chmod(0o777)
    return SandboxPlace(Layer(folder / "source"), Layer(folder / "objects"), folder / "out", folder / "work")


def _made() -> str:
    """Declarations as headers hold them, and functions that use them."""
    lines = [f"struct s{n} {{ int a; long b[{n % 7 + 1}]; struct s{n} *next; }};" for n in range(12_000)]
    lines += [
        f"static inline int get{n}(struct s{n} *s) {{ return s->a + (int)s->b[0]; }}" for n in range(12_000)
    ]
    for n in range(600):
        lines.append(
            f"long work{n}(struct s{n} *s, int count)\n{{\n\tlong sum = 0;\n\n\tfor (int i = 0; i < count; i++) {{\n"
            f"\t\tsum += get{n}(s) * i;\n\t\tif (sum & {n + 1})\n\t\t\ts = s->next;\n\t\telse\n\t\t\tsum ^= s->b[0] >> (i & 31);\n"
            f"\t}}\n\treturn sum;\n}}"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    run_benchmark(main)
