# SPDX-License-Identifier: GPL-2.0-or-later
"""Compare the compiler front's answers with the objects of a clean compile after changes of headers, on a kernel's own files.

The store is filled, then one header after another is changed, and files that include it are compiled by the front with
the store, by the front without, and by gcc; objects (of gcc's the code) and diagnostics must be equal. Before, the front sweeps
as it does before make: an object that it leaves as it was must be that of the clean compile, too. Files that the
front compiles are counted beside those whose object truly changed. The kernel's tree and its build are only read. The
exit status is 1 if anything differs.

    python -m bench.front --build DIR --source DIR [--files N] [--changes N] [--minutes N] [--each N] [--seed N]
"""

import hashlib
import os
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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from bench.command import run, spent
from bench.front_changes import KINDS, change
from kernels.builds.front_program import SWEEP, FrontSettings, compile_front, front_identity, place_front

# Where our builds see the tree, and the folders of headers of which we change a copy.
TREE = "/build/linux"
HEADERS = ("include", "arch/x86/include")
# Events of our own preprocessor that say nothing against its reading.
_PASSED = ("own-reading", "own-check", "own-unknown", "own-differs")
_COMMAND = re.compile(r"^\S+ := gcc (.*?) -c -o \S+ (\S+\.c)\b")
_HEADER = re.compile(rf"{TREE}/((?:include/linux|include/asm-generic|arch/x86/include/asm)/\S+\.h)")


@dataclass(frozen=True, slots=True)
class Compiled:
    """The object of one compilation, b"" for none, its diagnostics and its CPU seconds."""

    object: bytes
    said: str
    cpu: float


@dataclass(frozen=True, slots=True)
class Base:
    """A file as it was compiled before all changes, by the front and by gcc, and what the front and make keep of that."""

    made: Compiled
    gcc: Compiled
    made_of: bytes
    command: str


@dataclass(frozen=True, slots=True)
class Source:
    """A file of the kernel: its path, the compiler's flags, and the headers it includes."""

    path: str
    flags: tuple[str, ...]
    headers: frozenset[str]

    @property
    def object(self) -> str:
        """Path of its object in the directory in which the compiler runs."""
        return f"swept/{Path(self.path).stem}-{hashlib.sha256(self.path.encode()).hexdigest()[:8]}.o"

    @property
    def beside(self) -> str:
        """The beginning of the names of what is kept beside the object."""
        folder, _, name = self.object.rpartition("/")
        return f"{folder}/.{name}"

    @property
    def arguments(self) -> list[str]:
        """The compiler's arguments, as make gives them."""
        return [f"-Wp,-MMD,{self.beside}.d", *self.flags, "-c", "-o", self.object, self.path]


@dataclass(slots=True)
class Changed:
    """One change of a header, and the counts of COLUMNS over the files compiled after it."""

    kind: str
    header: str
    counts: Counter[str] = field(default_factory=Counter)


class Trial:
    """A kernel's build, read only, with a copy of its headers that may be changed."""

    def __init__(self, build: Path, source: Path, place: Path, seed: int, each: int = 4) -> None:
        self.build, self.source, self.place, self.each = build, source, place, each
        self.chance = random.Random(seed)
        self.program = compile_front(place / "program")
        self.identity = front_identity("gcc")
        self.changes: list[Changed] = []
        self.cpu = {"answers": 0.0, "gcc": 0.0}
        for folder in HEADERS:
            shutil.copytree(source / folder, place / "tree" / folder, symlinks=True)
        # Where the compiler runs: the build's directory, with a folder more.
        self.objects = place / "objects"
        (self.objects / "swept").mkdir(parents=True)
        for path in build.iterdir():
            (self.objects / path.name).symlink_to(path)
        self.clean = place_front(self.program, place / "clean", FrontSettings("gcc", self.identity))

    def sources(self, most: int) -> list[Source]:
        """Return some of the files that the build compiled, drawn by the seed."""
        paths = sorted(self.build.rglob(".*.o.cmd"))
        self.chance.shuffle(paths)
        return [file for file in map(self._read, paths) if file][:most]

    def compile(self, compiler: str | Path, file: Source, *more: str) -> Compiled:
        """Compile a file as the kernel's build does, against the copy of the headers."""
        out = self.objects / file.object
        out.unlink(missing_ok=True)
        before = spent()
        done = self.run(str(compiler), *file.arguments[:-4], *more, *file.arguments[-4:])
        cpu = spent() - before
        return Compiled(b"" if done.returncode else out.read_bytes(), done.stderr, cpu)

    def command(self, file: Source) -> str:
        """Return what kbuild would keep of the call that made a file's object."""
        words = (self.objects / f"{file.beside}.d").read_text().replace("\\\n", " ").split()[1:]
        inputs = "".join(f"  {word} \\\n" for word in words)
        call, made = shlex.join(("gcc", *file.arguments)), file.object
        return f"cmd_{made} := {call}\n\nsource_{made} := {file.path}\n\ndeps_{made} := \\\n{inputs}\n"

    def sweep(self, front: Path, file: Source, base: Base) -> bool:
        """Put a file's object of before there, sweep, and return whether it was left as it is."""
        for path in self.objects.glob("swept/.*.cmd"):
            path.unlink()
        out = self.objects / file.object
        out.write_bytes(base.made.object)
        os.utime(out, (0, 0))
        (self.objects / f"{file.beside}.front").write_bytes(base.made_of)
        (self.objects / f"{file.beside}.cmd").write_text(base.command)
        return "SAME" in self.run(str(front.with_name(SWEEP)), str(self.objects), "1").stdout

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
            command, cwd=self.objects, capture_output=True, text=True, check=False, errors="replace"
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


def change_headers(trial: Trial, files: list[Source], most: int, until: float) -> None:
    """Fill a store, change headers one by one, and compare the front with and without that store."""
    store = trial.place / "store"
    base = dict(_fill(trial, files, store, until - (until - time.monotonic()) / 2))
    headers = sorted({header for file in base for header in file.headers})
    kinds: list[str] = []
    while headers and len(trial.changes) < most and time.monotonic() < until:
        kinds = kinds or trial.chance.sample(KINDS, len(KINDS))
        header = trial.chance.choice(headers)
        path = trial.place / "tree" / header
        text = path.read_text(errors="surrogateescape")
        changed = change(text, kinds[-1], len(trial.changes), trial.chance)
        if changed is None:
            continue
        users = [file for file in base if header in file.headers]
        path.write_text(changed, errors="surrogateescape")
        some = trial.chance.sample(users, min(trial.each, len(users)))
        trial.changes.append(_compare(trial, Changed(kinds.pop(), header), some, base))
        path.write_text(text, errors="surrogateescape")


def _fill(trial: Trial, files: list[Source], store: Path, until: float) -> Iterator[tuple[Source, Base]]:
    """Yield each file the store now knows, with the front's object and gcc's."""
    store.mkdir()
    front = place_front(
        trial.program,
        trial.place / "fill",
        FrontSettings("gcc", trial.identity, [str(store)], str(store), release_placeholder=True),
    )
    for file in files:
        if time.monotonic() > until:
            return
        made = trial.compile(front, file)
        events = [line for line in (store / "counts").read_text().splitlines() if not line.startswith("own-")]
        if made.object and events[-1] == "miss":
            made_of = (trial.objects / f"{file.beside}.front").read_bytes()
            yield file, Base(made, trial.compile("gcc", file), made_of, trial.command(file))


def _compare(trial: Trial, change: Changed, files: list[Source], base: dict[Source, Base]) -> Changed:
    written = trial.place / "written"
    for file in files:
        shutil.rmtree(written, ignore_errors=True)
        written.mkdir()
        read = [str(trial.place / "store")]
        front = place_front(
            trial.program,
            trial.place / "front",
            FrontSettings("gcc", trial.identity, read, str(written), release_placeholder=True),
        )
        left = trial.sweep(front, file, base[file])
        # By what the sweep put beside the object, where it did not leave it.
        ours = base[file].made if left else trial.compile(front, file)
        clean, theirs = (trial.compile(way, file) for way in (trial.clean, "gcc"))
        events = (written / "counts").read_text().splitlines()
        hit = any(line.startswith(("hit ", "same ")) for line in events)
        code = trial.code(theirs)
        same = (ours.object, ours.said) == (clean.object, clean.said)
        same &= (trial.code(ours), ours.said) == (code, theirs.said)
        if not same:
            print(f"DIFFERS: {change.kind} in {change.header}: {file.path}", flush=True)
        change.counts += Counter(
            files=1,
            same=int(same),
            failed=int(not theirs.object),
            answered=int(hit),
            left=int(left),
            alone=int(left or "own-reading" in events),
            refused=int(any(line.startswith("own-") and line not in _PASSED for line in events)),
            differs=int("own-differs" in events),
            compiled=int(not hit),
            lines=int(bool(theirs.object) and clean.object != base[file].made.object),
            code=int(bool(theirs.object) and code != trial.code(base[file].gcc)),
            needless=int(not hit and bool(theirs.object) and clean.object == base[file].made.object),
        )
        if hit:
            trial.cpu["answers"] += ours.cpu
            trial.cpu["gcc"] += base[file].gcc.cpu
    return change


COLUMNS = {
    "files": "files compiled both ways",
    "same": "equal",
    "failed": "do not compile",
    "answered": "answered",
    "left": "left by the sweep",
    "alone": "without gcc",
    "refused": "not read by us",
    "differs": "read differently",
    "compiled": "compiled",
    "code": "code changed",
    "lines": "object changed",
    "needless": "compiled, object unchanged",
}


def _print(trial: Trial) -> bool:
    """Print a table by kind of change; return whether everything was equal."""
    print("| change | changes | headers | " + " | ".join(COLUMNS.values()) + " |")
    print("|---|" + "---|" * (2 + len(COLUMNS)))
    for kind in (*sorted({changed.kind for changed in trial.changes}), "all"):
        list_ = [changed for changed in trial.changes if kind in (changed.kind, "all")]
        counts = sum((changed.counts for changed in list_), Counter[str]())
        row = [len(list_), len({changed.header for changed in list_}), *(counts[name] for name in COLUMNS)]
        print(f"| {kind} | " + " | ".join(map(str, row)) + " |")
    print(
        f"CPU seconds of the answers: {trial.cpu['answers']:.1f}; of gcc for the same files: {trial.cpu['gcc']:.1f}"
    )
    counts = sum((changed.counts for changed in trial.changes), Counter[str]())
    return counts["same"] == counts["files"] > 0


def main(
    build: Annotated[Path | None, typer.Option(help="a kernel's build directory")] = None,
    source: Annotated[Path | None, typer.Option(help="the tree it was built from")] = None,
    files: Annotated[int, typer.Option(help="files that the store is filled with")] = 60,
    changes: Annotated[int, typer.Option(help="headers to change")] = 200,
    minutes: Annotated[
        float, typer.Option(help="stop after so long; half for filling the store at most")
    ] = 20,
    each: Annotated[int, typer.Option(help="files compiled after each change, at most")] = 4,
    seed: int = 1,
) -> int:
    """Run the trial."""
    if not build or not source or not (build / "include/config/auto.conf").exists():
        print(
            "bench.front: no kernel's build; name one with --build and its tree with --source: `make demo` leaves"
            " them below the state root as objects/*/obj and sources/*",
            file=sys.stderr,
        )
        return 2
    with tempfile.TemporaryDirectory(prefix="kperflab-front-") as place:
        trial = Trial(build.resolve(), source.resolve(), Path(place), seed, each)
        change_headers(trial, trial.sources(files), changes, time.monotonic() + 60 * minutes)
        return 0 if _print(trial) else 1


if __name__ == "__main__":
    run(main)
