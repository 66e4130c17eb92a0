# SPDX-License-Identifier: GPL-2.0-or-later
"""Compare the compiler front's answers with the objects of a clean compile, on a kernel's own files, and count their CPU time.

Two trials. `recompile`: each file is compiled whole, and from those declarations alone that the front says it
reaches; the objects must be equal. `change`: the store is filled, then one header after another is changed, and
files that include it are compiled by the front with the store, by the front without, and by gcc; objects (of gcc's the
code) and diagnostics must be equal. The kernel's tree and its build are only read. The exit status is 1 if anything differs.

    python -m bench.front --build DIR --source DIR [--files N] [--changes N] [--minutes N] [--seed N]
"""

import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from bench.command import run, spent
from bench.front_changes import change
from kernels.builds.front_program import FLAGS, SOURCES, compile_front, compiler_identity, place_front

# Where our builds see the tree, and the folders of headers of which we change a copy.
TREE = "/build/linux"
HEADERS = ("include", "arch/x86/include")
PER_CHANGE = 4
_COMMAND = re.compile(r"^\S+ := gcc (.*?) -c -o \S+ (\S+\.c)\b")
_HEADER = re.compile(rf"{TREE}/((?:include/linux|include/asm-generic|arch/x86/include/asm)/\S+\.h)")


@dataclass(frozen=True, slots=True)
class Compiled:
    """The object of one compilation, b"" for none, its diagnostics and its CPU seconds."""

    object: bytes
    said: str
    cpu: float


@dataclass(frozen=True, slots=True)
class Source:
    """A file of the kernel: its path, the compiler's flags, and the headers it includes."""

    path: str
    flags: tuple[str, ...]
    headers: frozenset[str]


class Trial:
    """A kernel's build, read only, with a copy of its headers that may be changed."""

    def __init__(self, build: Path, source: Path, place: Path, seed: int) -> None:
        self.build, self.source, self.place = build, source, place
        self.chance = random.Random(seed)
        self.program = compile_front(place / "program")
        self.identity = compiler_identity("gcc")
        self.count = Counter[str]()
        self.cpu = {"answers": 0.0, "gcc": 0.0}
        for folder in HEADERS:
            shutil.copytree(source / folder, place / "tree" / folder, symlinks=True)
        self.clean = place_front(self.program, place / "clean", "gcc", self.identity, [], "")

    def sources(self, most: int) -> list[Source]:
        """Return some of the files that the build compiled, drawn by the seed."""
        paths = sorted(self.build.rglob(".*.o.cmd"))
        self.chance.shuffle(paths)
        return [file for file in map(self._read, paths) if file][:most]

    def compile(self, compiler: str | Path, file: Source, *more: str) -> Compiled:
        """Compile a file as the kernel's build does, against the copy of the headers."""
        out = self.place / "out.o"
        out.unlink(missing_ok=True)
        before = spent()
        done = self.run(str(compiler), *file.flags, *more, "-c", "-o", str(out), file.path)
        cpu = spent() - before
        return Compiled(b"" if done.returncode else out.read_bytes(), done.stderr, cpu)

    def code(self, made: Compiled) -> bytes:
        """Return an object without its debugging information, of which the front keeps less than gcc."""
        path = self.place / "code.o"
        path.write_bytes(made.object)
        if made.object:
            subprocess.run(["objcopy", "-g", str(path)], check=True)
        return path.read_bytes()

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the build's directory."""
        return subprocess.run(
            command, cwd=self.build, capture_output=True, text=True, check=False, errors="replace"
        )

    def _read(self, path: Path) -> Source | None:
        text = path.read_text(errors="replace")
        match = _COMMAND.match(text)
        if match is None or "-g1" not in match[1].split():
            return None
        flags = [self._place(word) for word in shlex.split(match[1]) if not word.startswith("-Wp,-MMD")]
        return Source(self._place(match[2]), tuple(flags), frozenset(_HEADER.findall(text)))

    def _place(self, word: str) -> str:
        for folder in HEADERS:
            word = word.replace(f"{TREE}/{folder}", f"{self.place}/tree/{folder}")
        return word.replace(TREE, str(self.source))


def recompile(trial: Trial, files: list[Source], until: float) -> None:
    """Compile each file whole and from what it reaches; print each whose two objects differ."""
    reducer, whole, part = (str(trial.place / name) for name in ("reduce", "whole.i", "part.i"))
    parts = [str(path) for path in sorted(SOURCES.glob("*.cc")) if path.name != "main.cc"]
    own = str(Path(__file__).with_name("front_reduce.cc"))
    subprocess.run(["g++", *FLAGS, f"-I{SOURCES}", "-o", reducer, own, *parts, "-lz"], check=True)
    for file in files:
        if time.monotonic() > until:
            return
        # Entries for functions and variables would differ; the front leaves them out.
        flags = [*file.flags, "-g0", "-w"]
        trial.run("gcc", *flags, "-E", "-o", whole, file.path)
        reduced = subprocess.run([reducer, whole], capture_output=True, check=False)
        if reduced.returncode:
            trial.count["left to the compiler"] += 1
            continue
        Path(part).write_bytes(reduced.stdout)
        objects = [_object(trial, flags, text) for text in (whole, part)]
        trial.count["compiled both ways"] += 1
        same = objects[0] == objects[1] != b""
        trial.count["equal"] += same
        if not same:
            print(f"DIFFERS: {file.path} from what it reaches", flush=True)


def change_headers(trial: Trial, files: list[Source], most: int, until: float) -> None:
    """Fill a store, change headers one by one, and compare the front with and without that store."""
    store = trial.place / "store"
    base = dict(_fill(trial, files, store, until - (until - time.monotonic()) / 2))
    headers = sorted({header for file in base for header in file.headers})
    while headers and trial.count["changes"] < most and time.monotonic() < until:
        header = trial.chance.choice(headers)
        path = trial.place / "tree" / header
        text = path.read_text(errors="surrogateescape")
        changed = change(text, trial.count["changes"], trial.chance)
        if changed is None:
            continue
        users = [file for file in base if header in file.headers]
        path.write_text(changed[1], errors="surrogateescape")
        _compare(
            trial, f"{changed[0]} in {header}", trial.chance.sample(users, min(PER_CHANGE, len(users))), base
        )
        path.write_text(text, errors="surrogateescape")
        trial.count["changes"] += 1


def _fill(
    trial: Trial, files: list[Source], store: Path, until: float
) -> Iterator[tuple[Source, tuple[Compiled, Compiled]]]:
    """Yield each file the store now knows, with the front's object and gcc's."""
    store.mkdir()
    front = place_front(trial.program, trial.place / "fill", "gcc", trial.identity, [str(store)], str(store))
    for file in files:
        if time.monotonic() > until:
            return
        made = trial.compile(front, file)
        if made.object and (store / "counts").read_text().splitlines()[-1] == "miss":
            yield file, (made, trial.compile("gcc", file))


def _compare(
    trial: Trial, name: str, files: list[Source], base: dict[Source, tuple[Compiled, Compiled]]
) -> None:
    written = trial.place / "written"
    for file in files:
        shutil.rmtree(written, ignore_errors=True)
        written.mkdir()
        read = [str(trial.place / "store")]
        front = place_front(trial.program, trial.place / "front", "gcc", trial.identity, read, str(written))
        ours, clean, theirs = (trial.compile(way, file) for way in (front, trial.clean, "gcc"))
        hit = "\nhit " in "\n" + (written / "counts").read_text()
        trial.count["compared"] += 1
        trial.count["does not compile"] += not clean.object
        same = (ours.object, ours.said) == (clean.object, clean.said)
        if same and (trial.code(ours), ours.said) == (trial.code(theirs), theirs.said):
            trial.count["same"] += 1
        else:
            print(f"DIFFERS: {name}: {file.path}", flush=True)
        if hit:
            trial.count["answered"] += 1
            trial.cpu["answers"] += ours.cpu
            trial.cpu["gcc"] += base[file][1].cpu
        elif clean.object == base[file][0].object:
            trial.count["compiled in vain"] += 1


def _object(trial: Trial, flags: list[str], text: str) -> bytes:
    out = trial.place / "part.o"
    out.unlink(missing_ok=True)
    trial.run("gcc", *flags, "-fpreprocessed", "-c", "-o", str(out), "-x", "cpp-output", text)
    return out.read_bytes() if out.exists() else b""


def _print(trial: Trial) -> bool:
    """Print the counts; return whether everything was equal."""
    count, cpu = trial.count, trial.cpu
    print(f"files compiled both ways: {count['compiled both ways']}, equal: {count['equal']}, ", end="")
    print(f"left to the compiler: {count['left to the compiler']}")
    print(f"changes of a header: {count['changes']}; compilations compared: {count['compared']}, ", end="")
    print(f"same: {count['same']} (that do not compile: {count['does not compile']})")
    print(f"answered from the store: {count['answered']}, ", end="")
    print(f"compiled though the object did not change: {count['compiled in vain']}")
    print(f"CPU seconds of the answers: {cpu['answers']:.1f}; of gcc for the same files: {cpu['gcc']:.1f}")
    return count["equal"] == count["compiled both ways"] and count["same"] == count["compared"]


def main(
    build: Annotated[Path | None, typer.Option(help="a kernel's build directory")] = None,
    source: Annotated[Path | None, typer.Option(help="the tree it was built from")] = None,
    files: Annotated[int, typer.Option(help="files for each trial")] = 60,
    changes: Annotated[int, typer.Option(help="headers to change")] = 200,
    minutes: Annotated[float, typer.Option(help="stop after so long; half for each trial")] = 20,
    seed: int = 1,
) -> int:
    """Run both trials."""
    if not build or not source or not (build / "include/config/auto.conf").exists():
        print(
            "bench.front: no kernel's build; name one with --build and its tree with --source: `make demo` leaves"
            " them below the state root as objects/*/obj and sources/*",
            file=sys.stderr,
        )
        return 2
    with tempfile.TemporaryDirectory(prefix="kperflab-front-") as place:
        trial = Trial(build.resolve(), source.resolve(), Path(place), seed)
        drawn, start = trial.sources(2 * files), time.monotonic()
        change_headers(trial, drawn[:files], changes, start + 30 * minutes)
        recompile(trial, drawn[files:], time.monotonic() + 30 * minutes)
        return 0 if _print(trial) else 1


if __name__ == "__main__":
    run(main)
