# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs the compiler front beside the compiler itself, for the front's tests."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kernels.builds.front_program import FrontSettings, place_front

FLAGS = ("-nostdinc", "-std=gnu11", "-O2", "-Wall", "-fno-PIE", "-g1")
IDENTITY = "ab" * 32


@dataclass(slots=True)
class Bench:
    """A folder with a header and a source, a front with a store, and one with none."""

    folder: Path
    program: Path
    release_placeholder: bool = False
    store: Path = field(init=False)

    def __post_init__(self) -> None:
        self.store = self.folder / "store"
        self.store.mkdir(parents=True)
        settings = FrontSettings(
            "gcc", IDENTITY, write=str(self.store), release_placeholder=self.release_placeholder
        )
        place_front(self.program, self.folder / "front", settings)
        place_front(self.program, self.folder / "clean", FrontSettings("gcc", IDENTITY))

    def write(self, **files: str) -> None:
        """Write files by name, "_" for "."."""
        for name, text in files.items():
            (self.folder / name.replace("_", ".")).write_text(text)

    def run(self, compiler: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run "front", "clean" or "/usr/bin/gcc" in the folder."""
        program = compiler if "/" in compiler else str(self.folder / compiler / "gcc")
        return subprocess.run(
            [program, *arguments],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=60,
            env={"PATH": "/usr/bin", "LC_ALL": "C", **environment},
        )

    def compile(self, compiler: str = "front", *more: str, source: str = "a.c") -> bytes:
        """Return the object of the source. Raises AssertionError with what the compiler said."""
        out = self.folder / "out.o"
        out.unlink(missing_ok=True)
        done = self.run(compiler, *FLAGS, *more, "-c", "-o", "out.o", source)
        assert done.returncode == 0, done.stderr
        return out.read_bytes()

    def compare_words(self, source: str, *more: str, complains: bool | None = None) -> None:
        """Assert that the front and gcc end alike and say the same of a source. complains: whether they say anything, if told."""
        ours, theirs = (
            self.run(compiler, *FLAGS, *more, "-c", "-o", "out.o", source)
            for compiler in ("front", "/usr/bin/gcc")
        )
        assert (ours.returncode, ours.stderr) == (theirs.returncode, theirs.stderr)
        assert complains in (None, bool(theirs.stderr))

    def compare_code(self, headers: Sequence[str], source: str, *more: str) -> None:
        """Assert that the front's object is gcc's with each header in turn and with the first again. Line tables aside."""
        for header in (*headers, headers[0]):
            self._write_pair(header, source)
            assert self.code("front", *more) == self.code("/usr/bin/gcc", *more), header

    def compare_words_with(self, old: str, new: str, source: str, *more: str) -> None:
        """Assert that a header brings a warning or an error, and that the front says it as gcc does, twice."""
        for header, complains in ((old, False), (new, True), (new, True)):
            self._write_pair(header, source)
            self.compare_words("a.c", *more, complains=complains)

    def _write_pair(self, header: str, source: str) -> None:
        includes = '#include "h.h"\n'
        self.write(h_h=header, a_c=source if includes in source else includes + source)

    def code(self, compiler: str, *more: str) -> bytes:
        """Return the object without its debugging information."""
        self.compile(compiler, *more)
        subprocess.run(["objcopy", "-g", "out.o", "code.o"], cwd=self.folder, check=True)
        return (self.folder / "code.o").read_bytes()

    def lines(self) -> list[list[str]]:
        """Return the words of each row of the line table that was compiled last."""
        listed = subprocess.run(
            ["objdump", "--dwarf=decodedline", "out.o"],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=True,
        )
        return [row.split() for row in listed.stdout.splitlines()]

    def events(self) -> list[str]:
        """Return what has happened since the last call, without names of files and who preprocessed them."""
        return [line for line in self.all_events() if not line.startswith("own-")]

    def all_events(self) -> list[str]:
        """Return what has happened since the last call, without names of files."""
        counts = self.store / "counts"
        lines = counts.read_text().splitlines() if counts.exists() else []
        counts.unlink(missing_ok=True)
        return [line.split(" ")[0] for line in lines]
