# SPDX-License-Identifier: GPL-2.0-or-later
"""Compare the tokens that the compiler front's own preprocessor reads with those of gcc -E, on a kernel's own files.

Files that a build compiled, drawn by the seed, are read both ways: every token must be the same at the same place. Then
headers are changed, one at a time (bench/front_changes.py), and a file that includes the header is read both ways again.
Where gcc fails or complains, our own must refuse. The kernel's tree and its build are only read; a prepared kernel's files
(see bench.front_split) are compared as they are. The exit status is 1 if anything differs.

    python -m bench.front_reading [PREPARED...] [--build DIR --source DIR] [--files N] [--edits N] [--minutes N] [--seed N]
"""

import random
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Annotated

import typer

from bench.command import run, spent
from bench.front import Trial
from bench.front_changes import KINDS, change
from bench.front_split import Kernel
from kernels.builds.front_program import compile_front

# What a small change puts anywhere.
SCRAPS = (
    *("#", "##", "\\\n", "\\ \n", "\n", " ", "/*", "*/", "//", '"', "'", "(", ")", ",", "...", "?", ":"),
    *("-", "!", "<", ">"),
    *("__VA_ARGS__", "__VA_OPT__", "__LINE__", "__FILE__", "__COUNTER__", "__DATE__", "defined"),
    *("defined(X)", "0x", "1u"),
    *("%:", "<:", "??=", "L", "R", "u8", "\u00e9", "\u202e", "\0", "\r", "@", "$", "`"),
    *('_Pragma("once")', "&&", "||", "-1"),
    *("\n#if 1\n", "\n#if 0\n", "\n#endif\n", "\n#else\n", "\n#elif 1\n", "\n#line 7\n"),
    *("\n#pragma once\n", "\n#ident\n"),
    *("\n#define X x\n", "\n#undef X\n", "\n#define X(a, b...) #a a##b b\n", "X", "X(1, 2)", "X("),
    *("\n#error no\n", "\n# 7\n"),
)

COMPARE = Path(__file__).with_name("front_compare.cc")


class Comparison:
    """Read files both ways, and count the results."""

    def __init__(self, place: Path) -> None:
        self.place, self.program = place, compile_front(place / "compare", COMPARE)
        self.counts: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.cpu: defaultdict[str, float] = defaultdict(float)
        self.wrong = 0
        (place / "store").mkdir()

    def file(self, what: str, folder: Path, flags: list[str], path: str, before: str = "-") -> None:
        """Read one file both ways. what: under which word to count it. before: a file to read before it."""
        text = self.place / "theirs.i"
        begun = spent()
        theirs = _run(folder, "gcc", *flags, "-E", "-o", str(text), path)
        cpu = spent() - begun
        silent = not theirs.returncode and not theirs.stderr
        words = [str(self.place / "store"), "/usr/bin/gcc", str(text) if silent else "-", before, *flags]
        ours = _run(folder, str(self.program), *words, "-c", "-o", "none.o", path)
        own, reading, said = (ours.stdout.strip() or f"0 0 DIFFERS: status {ours.returncode}").split(" ", 2)
        self.counts[what] += 1
        if said.startswith("refused "):
            self.refused[said.removeprefix("refused ") if silent else "gcc complains"] += 1
        elif said == "equal":
            self.counts["equal"] += 1
            self.cpu["ours"] += float(own)
            self.cpu["gcc -E"] += cpu
            self.cpu["reading its text"] += float(reading)
        else:
            self.wrong += 1
            print(
                f"WRONG: {path}: {said if silent else 'gcc complains: ' + theirs.stderr[-400:]}", flush=True
            )

    def tell(self) -> None:
        """Print the counts and the CPU seconds of the files that were equal."""
        print(", ".join(f"{number} {what}" for what, number in self.counts.items()) + f", {self.wrong} WRONG")
        print(
            "refused: " + (", ".join(f"{number} {why}" for why, number in self.refused.most_common()) or "0")
        )
        print("CPU seconds of the equal: " + ", ".join(f"{what} {cpu:.2f}" for what, cpu in self.cpu.items()))


def _run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, errors="replace")


def scratch(text: str, chance: random.Random) -> str:
    """Return a source with a small change anywhere, most often in a directive or a macro."""
    lines = text.splitlines(keepends=True) or ["\n"]
    some = [
        number for number, line in enumerate(lines) if line.lstrip().startswith("#") or line.endswith("\\\n")
    ]
    number = chance.choice(some) if some and chance.random() < 0.7 else chance.randrange(len(lines))
    line, at = lines[number], chance.randrange(len(lines[number]))
    way = chance.randrange(6)
    if way == 0:
        lines[number] = line[:at] + line[at + chance.randint(1, 3) :]
    elif way == 1:
        lines.insert(chance.randrange(len(lines)), line)
    elif way == 2:
        del lines[number]
    else:
        lines[number] = line[:at] + chance.choice(SCRAPS) + line[at:]
    return "".join(lines)


def compare_prepared(comparison: Comparison, build: Path, files: int, chance: random.Random) -> None:
    """Compare files of a prepared kernel."""
    kernel = Kernel(build)
    for path in kernel.files(chance)[:files]:
        comparison.file("files", kernel.build, kernel.flags, str(path))


def compare_built(comparison: Comparison, trial: Trial, most: int, edits: int, until: float) -> None:
    """Compare files that a build compiled, and again after changes of headers."""
    files = trial.sources(most)
    for file in files:
        if time.monotonic() > until:
            break
        comparison.file("files", trial.build, list(file.flags), file.path, trial.chance.choice(files).path)
    number = 0
    while number < edits and time.monotonic() < until:
        file = trial.chance.choice(files)
        path = trial.place / "tree" / trial.chance.choice(sorted(file.headers))
        text = path.read_text(errors="surrogateescape")
        kind = trial.chance.choice(KINDS)
        scratched = trial.chance.random() < 0.5
        changed = scratch(text, trial.chance) if scratched else change(text, kind, number, trial.chance)
        if changed is None:
            continue
        number += 1
        path.write_text(changed, errors="surrogateescape")
        comparison.file("changes", trial.build, list(file.flags), file.path, trial.chance.choice(files).path)
        path.write_text(text, errors="surrogateescape")


def main(
    prepared: Annotated[list[Path] | None, typer.Argument(help="prepared build directories")] = None,
    build: Annotated[Path | None, typer.Option(help="a kernel's build directory")] = None,
    source: Annotated[Path | None, typer.Option(help="the tree it was built from")] = None,
    files: Annotated[int, typer.Option(help="files of each kernel")] = 40,
    edits: Annotated[int, typer.Option(help="changes of headers of the build")] = 60,
    minutes: Annotated[float, typer.Option(help="stop with the build after so long")] = 15,
    seed: int = 1,
) -> int:
    """Compare all files, and report the results."""
    if not prepared and not (build and source and (build / "include/config/auto.conf").exists()):
        print(
            "bench.front_reading: no kernel; name a build with --build and its tree with --source (`make demo` leaves"
            " them below the state root as objects/*/obj and sources/*), or a prepared directory",
            file=sys.stderr,
        )
        return 2
    with tempfile.TemporaryDirectory(prefix="kperflab-reading-") as place:
        comparison = Comparison(Path(place))
        for directory in prepared or []:
            compare_prepared(comparison, directory.resolve(), files, random.Random(seed))
        if build and source:
            trial = Trial(build.resolve(), source.resolve(), Path(place), seed)
            compare_built(comparison, trial, files, edits, time.monotonic() + 60 * minutes)
        comparison.tell()
        return int(comparison.wrong > 0 or not comparison.counts["equal"])


if __name__ == "__main__":
    run(main)
