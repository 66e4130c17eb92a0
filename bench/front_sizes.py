# SPDX-License-Identifier: GPL-2.0-or-later
"""Check that the size of a structure has no say in an object of which the compiler front says so, on a kernel's own files.

Each file is compiled as the front would, and once more with each structure larger of which it needs but some members. Where the
compiler reads the same of both, its code must be the same. The kernel's tree and its build are only read. The exit status is 1
if anything differs.

    python -m bench.front_sizes --build DIR --source DIR [--files N] [--minutes N] [--seed N]
"""

import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from bench.command import run
from bench.front import Trial
from kernels.builds.front_program import compile_front

_COMPARE = Path(__file__).with_name("front_sizes.cc")


def main(
    build: Annotated[Path, typer.Option(help="a kernel's build directory")],
    source: Annotated[Path, typer.Option(help="the tree it was built from")],
    files: Annotated[int, typer.Option(help="files of the build")] = 100,
    minutes: Annotated[float, typer.Option(help="stop after so long")] = 15,
    seed: int = 1,
) -> int:
    """Compare all files, and report the results."""
    until = time.monotonic() + 60 * minutes
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="kperflab-sizes-") as folder:
        place = Path(folder)
        program = compile_front(place / "compare", _COMPARE)
        trial = Trial(build.resolve(), source.resolve(), place, seed)
        (place / "store").mkdir()
        for file in trial.sources(files):
            if time.monotonic() > until:
                break
            words = [
                str(program),
                str(place / "store"),
                "/usr/bin/gcc",
                *file.flags,
                "-c",
                "-o",
                "none.o",
                file.path,
            ]
            done = subprocess.run(words, cwd=trial.build, capture_output=True, text=True, check=False)
            said = done.stdout.strip() or f"DIFFERS: status {done.returncode}"
            counts[said] += 1
            if said.startswith("DIFFERS"):
                print(f"{said}: {file.path}", flush=True)
    print(", ".join(f"{number} {said}" for said, number in counts.most_common()))
    return int(any(said.startswith("DIFFERS") for said in counts) or not counts["same"])


if __name__ == "__main__":
    run(main)
