# SPDX-License-Identifier: GPL-2.0-or-later
"""Fuzz how the compiler front splits a file: no file that compiles may be split wrongly.

Each kernel is a directory that `make O=DIR CC=gcc|clang x86_64_defconfig prepare` left. Files of it, drawn by the seed,
are compiled whole, and from those declarations alone that the front says they use: the objects must be equal. Where these
do not compile, as the front would notice, it is done with all that they mention.
Then declarations in forms that are easily misread (bench/front_forms.py) are put into what is left of each file, and that is
compiled both ways. The exit status is 1 if anything differs; what differs is kept in build/front-split.

    python -m bench.front_split DIR... [--files N] [--edits N] [--minutes N] [--seed N]
"""

import random
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from bench import front_forms
from bench.command import run
from kernels.builds.front_program import FLAGS
from kernels.builds.front_sources import SOURCES

FINDS = Path(__file__).resolve().parents[1] / "build" / "front-split"
FOLDERS = (
    *("kernel", "mm", "fs", "lib", "block", "net/core", "net/ipv4", "drivers/base", "drivers/tty", "crypto"),
)
_COMMAND = re.compile(r"^(?:saved)?cmd_\S+ := (\S+) (.*?) -c -o \S+ \S+\.c\b", re.MULTILINE)
# What the front adds for headers' unused variables: a text that is reduced again would have it twice.
_USES = re.compile(rb"^static inline [^\n]* kperflab_front_uses[^\n]*\n", re.MULTILINE)
_MARKER = re.compile(r'^# \d+ "[^"]*".*\n', re.MULTILINE)
_CALLED = re.compile(r"\b([a-z]\w+)\(")
# Compiled once, for its command.
_SAMPLE = "lib/ctype"


class Kernel:
    """A prepared kernel: its tree, its compiler and the flags for a file of it."""

    def __init__(self, build: Path) -> None:
        self.build, self.source = build, (build / "source").resolve()
        said = re.search(r'CONFIG_CC_VERSION_TEXT="(.*)"', (build / ".config").read_text())
        self.compiler = "clang" if said and "clang" in said[1] else "gcc"
        make = ["make", "-s", f"CC={self.compiler}", f"{_SAMPLE}.o"]
        subprocess.run(make, cwd=build, check=True, capture_output=True)
        folder, name = _SAMPLE.split("/")
        match = _COMMAND.search((build / folder / f".{name}.o.cmd").read_text())
        assert match, "the kernel's own record of a command has another form"
        self.flags = [word for word in shlex.split(match[2]) if not word.startswith("-Wp,-MMD")]

    def files(self, chance: random.Random) -> list[Path]:
        """Return the tree's C files in an order that the seed makes."""
        files = [path for folder in FOLDERS for path in sorted((self.source / folder).rglob("*.c"))]
        chance.shuffle(files)
        return files

    def run(self, *words: str) -> bool:
        """Run the compiler in the build's directory; return whether it ended well."""
        command = [self.compiler, *self.flags, "-g0", "-w", *words]
        return not subprocess.run(command, cwd=self.build, capture_output=True, check=False).returncode


class Trial:
    """The counts, and the folder of the files at hand."""

    def __init__(self, place: Path, seed: int) -> None:
        self.place, self.seed = place, seed
        self.chance = random.Random(seed)
        self.counts: dict[str, Counter[str]] = {}
        self.reducer = str(place / "reduce")
        parts = [str(path) for path in sorted(SOURCES.glob("*.cc")) if path.name != "main.cc"]
        own = str(Path(__file__).with_name("front_reduce.cc"))
        subprocess.run(["g++", *FLAGS, f"-I{SOURCES}", "-o", self.reducer, own, *parts, "-lz"], check=True)

    def kernel(self, kernel: Kernel, files: int, edits: int, until: float) -> None:
        """Try files of one kernel, each as it is and with edits."""
        name = f"{kernel.source.name[:24]} by {kernel.compiler}"
        count = self.counts.setdefault(name, Counter())
        for file in kernel.files(self.chance):
            if count["files"] >= files or time.monotonic() > until:
                return
            whole = self.place / "whole.i"
            if not kernel.run("-E", "-o", str(whole), str(file)):
                continue
            reduced = self.try_both(kernel, whole.read_bytes(), count, "files", str(file))
            if reduced is None:
                continue
            for number in range(edits):
                if time.monotonic() > until:
                    return
                text = edited(reduced.decode(errors="surrogateescape"), number, self.chance)
                self.try_both(kernel, text.encode(errors="surrogateescape"), count, "edits", str(file))

    def try_both(
        self, kernel: Kernel, text: bytes, count: Counter[str], what: str, file: str
    ) -> bytes | None:
        """Compile a text whole and reduced; return the reduced text, None where the whole does not compile."""
        whole = self._object(kernel, text)
        if whole is None:
            count[f"{what} that do not compile"] += 1
            return None
        count[what] += 1
        path = self.place / "text.i"
        path.write_bytes(text)
        done = self._reduce(kernel, path, "used")
        if done.returncode:
            count[f"{what} left to the compiler"] += 1
            return None
        made = self._object(kernel, done.stdout)
        if made is None:
            count[f"{what} that need all they mention"] += 1
            done = self._reduce(kernel, path, "mentioned")
            done.check_returncode()
            made = self._object(kernel, done.stdout)
        if made != whole:
            count["DIFFERENT"] += 1
            FINDS.mkdir(parents=True, exist_ok=True)
            kept = FINDS / f"{self.seed}-{count['DIFFERENT']}-{kernel.compiler}-{Path(file).stem}.i"
            kept.write_bytes(text)
            print(f"DIFFERS: {file} by {kernel.compiler}: {kept}", flush=True)
        return _USES.sub(b"", done.stdout)

    def _reduce(self, kernel: Kernel, text: Path, how: str) -> subprocess.CompletedProcess[bytes]:
        flags = [f"/usr/bin/{kernel.compiler}", *kernel.flags, "-c", "-o", "none.o", str(text)]
        command = [self.reducer, str(text), how, *flags]
        return subprocess.run(command, cwd=kernel.build, capture_output=True, check=False)

    def _object(self, kernel: Kernel, text: bytes) -> bytes | None:
        path, out = self.place / "part.i", self.place / "part.o"
        out.unlink(missing_ok=True)
        path.write_bytes(text)
        good = kernel.run("-c", "-o", str(out), "-x", "cpp-output", str(path))
        return out.read_bytes() if good else None


def edited(text: str, number: int, chance: random.Random) -> str:
    """Return a preprocessed text with declarations of a header in it, before what its input declares last."""
    starts = [match.start() for match in _MARKER.finditer(text)][1:]
    names = sorted(set(_CALLED.findall(text))) or ["memcpy"]
    at = chance.choice(starts) if starts else len(text)
    added = '# 1 "kp.h" 1\n' + front_forms.declarations(names, number, chance) + "\n"
    own = _MARKER.search(text)
    used = (
        f"{own[0] if own else ''}{front_forms.use(names, number, chance)}\n" if chance.random() < 0.4 else ""
    )
    return text[:at] + added + text[at:] + used


def main(
    kernels: Annotated[list[Path], typer.Argument(help="prepared build directories")],
    files: Annotated[int, typer.Option(help="files of each kernel")] = 20,
    edits: Annotated[int, typer.Option(help="edits of each file")] = 40,
    minutes: Annotated[float, typer.Option(help="stop after so long")] = 15,
    seed: int = 1,
) -> int:
    """Try each kernel for its share of the time."""
    for kernel in kernels:
        if not (kernel / ".config").exists() or not (kernel / "source").exists():
            way = f"make O={kernel} CC=gcc x86_64_defconfig prepare"
            print(
                f"bench.front_split: {kernel} is not a prepared kernel; run: {way} in its tree",
                file=sys.stderr,
            )
            return 2
    with tempfile.TemporaryDirectory(prefix="kperflab-split-") as place:
        trial = Trial(Path(place), seed)
        for kernel in kernels:
            trial.kernel(
                Kernel(kernel.resolve()), files, edits, time.monotonic() + 60 * minutes / len(kernels)
            )
        for name, count in trial.counts.items():
            print(f"{name}: " + ", ".join(f"{number} {what}" for what, number in sorted(count.items())))
        return int(any(count["DIFFERENT"] for count in trial.counts.values()))


if __name__ == "__main__":
    run(main)
