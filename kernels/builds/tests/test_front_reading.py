# SPDX-License-Identifier: GPL-2.0-or-later
"""The compiler front's own preprocessor: it reads what gcc's reads, or leaves the file to gcc."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.front_reading import COMPARE, scratch
from kernels.builds.front_program import compile_front
from kernels.builds.tests.front_cases import HEADER, MAIN
from kernels.builds.tests.front_runs import FLAGS, Bench
from kernels.builds.tests.reading_cases import HEADERS, READ, REFUSED, made_headers, made_source
from kernels.tests.kept import kept

pytestmark = pytest.mark.process
_FLAGS = ("-nostdinc", "-std=gnu11", "-O2", "-Wall", "-g1", "-Imore", "-I", "missing")


@pytest.fixture(scope="session")
def compare() -> Path:
    """The program that reads a source both ways, compiled once for these sources."""
    return compile_front(kept("front"), COMPARE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the headers, and one for the compiler's answers."""
    for name, text in HEADERS.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "store").mkdir()
    return tmp_path


def _read(
    compare: Path, folder: Path, text: str, flags: Sequence[str] = _FLAGS, before: str = "-"
) -> tuple[str, bool]:
    """Return the result of reading a source both ways, and whether gcc printed nothing. before: sources to read first."""
    (folder / "a.c").write_text(text, newline="")
    gcc = _run(folder, "/usr/bin/gcc", *flags, "-E", "-o", "a.i", "a.c")
    silent = not gcc.returncode and not gcc.stderr
    words = ["store", "/usr/bin/gcc", "a.i" if silent else "-", before, *flags, "-c", "-o", "a.o", "a.c"]
    return _run(folder, str(compare), *words).stdout.strip().split(" ", 2)[2], silent


def _run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/usr/bin", "LC_ALL": "C.UTF-8"}
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, errors="replace", env=environment
    )


@pytest.mark.parametrize("text", READ.values(), ids=READ)
def test_a_source_has_the_tokens_that_gcc_makes_of_it(compare: Path, folder: Path, text: str) -> None:
    assert _read(compare, folder, text) == ("equal", True)


@pytest.mark.parametrize(("text", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_is_odd_is_left_to_gcc(compare: Path, folder: Path, text: str, reason: str) -> None:
    assert _read(compare, folder, text)[0] == f"refused {reason}"


@pytest.mark.parametrize(
    ("flags", "read"),
    [
        (["-DA=1", "-D", "F(x)=x + 1", "-UA", "-D__KERNEL__", "-D", 'T="a b"'], True),
        (["-include", "h.h", "-include", "sub/beside.h"], True),
        (["-fmacro-prefix-map=sub/=", "-include", "level.h"], True),
        (["-iquote", "sub"], True),
        (["-Wundef"], True),
        (["-isystem", "sub"], False),
        (["-imacros", "h.h"], False),
        (["-std=c11"], False),
        (["-Wtraditional"], False),
        (["-MD", "-MF", "x.d"], False),
    ],
)
def test_flags_are_understood_or_left_to_gcc(
    compare: Path, folder: Path, flags: list[str], read: bool
) -> None:
    text = '#include "other.h"\n#ifdef A\na A\n#endif\nF(1) T LATE(1) __FILE__\n'
    text = text if "-iquote" in flags else text.replace('#include "other.h"', "")
    said, _ = _read(compare, folder, text, [*_FLAGS, *flags])
    assert said == ("equal" if read else "refused own-flags")


def test_a_name_that_is_no_macro_is_left_to_gcc_where_it_would_warn(compare: Path, folder: Path) -> None:
    text = "#if NONE\n#endif\nint a;\n"
    assert _read(compare, folder, text, [*_FLAGS, "-Wundef"]) == ("refused own-undefined", False)
    assert _read(compare, folder, text) == ("equal", True)


def test_small_changes_anywhere_are_read_alike_or_left_to_gcc(compare: Path, folder: Path) -> None:
    chance = random.Random(20)
    texts = list(READ.values())
    for _ in range(60):
        said, silent = _read(compare, folder, text := scratch(chance.choice(texts), chance))
        assert said == "equal" or said.startswith("refused "), text
        assert silent or said != "equal", text


def test_headers_that_other_sources_have_read_are_read_alike(compare: Path, folder: Path) -> None:
    equal = 0
    for seed in range(60):
        chance = random.Random(seed)
        names = list(headers := made_headers(chance))
        for name, text in headers.items():
            (folder / name).write_text(text)
        before = [f"before{number}.c" for number in range(4)]
        for name in before:
            (folder / name).write_text(made_source(names, chance))
        said, silent = _read(compare, folder, made_source(names, chance), before=",".join(before))
        assert said == "equal" if silent else said.startswith("refused "), seed
        equal += said == "equal"
    assert equal > 40


@pytest.mark.parametrize(
    ("header", "before", "after"),
    [
        ("A\n", "", "#define A a\n"),
        ("#define A 1\n", "", "#define B\n"),
        ("#ifdef A\na\n#endif\n", "", "#define A\n"),
        ("#ifndef A\n#define A\na\n#endif\n", "", "#define A\n"),
        ("#undef A\n", "", "#define A\n"),
        ("#if A(1) + B\na\n#endif\n", "#define A(x) x\n#define B -1\n", "#define A(x) x\n#define B 1\n"),
        ("F(1)\n", "#define F(x) G(x)\n#define G(x) x\n", "#define F(x) G(x)\n#define G(x) x x\n"),
        ("D(id_, __COUNTER__) __COUNTER__ in; S(__COUNTER__)\n", "", "int D(id_, __COUNTER__);\n"),
        ("D(D(id_, __COUNTER__), _t)\n", "", "int D(id_, __COUNTER__);\n"),
        ("__INCLUDE_LEVEL__ __BASE_FILE__ __FILE__ __LINE__\n", "", '#include "level.h"\n'),
        ("#pragma once\nint once;\n", "", '#include "made.h"\n'),
        ('#if A\n#include "h.h"\na\n#else\n#include "h.h"\nb\n#endif\nc\n', "#define A 0\n", "#define A 1\n"),
        (
            '#ifdef A\n#include "h.h"\n#if 1\n#include "once.h"\n#endif\nLATE(A)\n#endif\n',
            "",
            "#define A a\n",
        ),
    ],
)
def test_a_header_is_read_again_where_it_would_differ(
    compare: Path, folder: Path, header: str, before: str, after: str
) -> None:
    pastes = "#define C(a, b) a##b\n#define D(a, b) C(a, b)\n#define S(x) T(x)\n#define T(x) #x\n"
    (folder / "made.h").write_text(header)
    (folder / "before.c").write_text(pastes + before + '#include "made.h"\n')
    text = pastes + after + '#include "made.h"\nA B F D(end_, __COUNTER__)\n'
    assert _read(compare, folder, text, before="before.c,before.c") == ("equal", True)


def test_a_number_that_makes_a_macro_of_a_kept_name_is_left_to_gcc(compare: Path, folder: Path) -> None:
    pastes = "#define C(a, b) a##b\n#define D(a, b) C(a, b)\n"
    (folder / "made.h").write_text("int D(id_, __COUNTER__);\n")
    (folder / "before.c").write_text(pastes + '#include "made.h"\n')
    text = pastes + '#define id_1 one\nint D(id_, __COUNTER__);\n#include "made.h"\n'
    assert _read(compare, folder, text, before="before.c") == ("refused own-counter", True)


@pytest.fixture
def bench(tmp_path: Path, program: Path) -> Bench:
    """A folder whose store is empty."""
    made = Bench(tmp_path / "bench", program)
    made.write(h_h=HEADER, a_c=MAIN)
    return made


def test_a_file_is_answered_without_gcc_once_both_have_agreed_on_it(bench: Bench) -> None:
    bench.compile()
    assert bench.all_events() == ["miss"]
    assert bench.compile() == bench.compile("clean")
    assert bench.all_events() == ["own-reading", "hit"]
    # What is new is checked.
    bench.write(h_h="extern int fresh(void);\n" + HEADER)
    assert bench.compile() == bench.compile("clean")
    assert bench.all_events() == ["own-check", "checked", "own-reading", "hit"]
    assert bench.compile() == bench.compile("clean")
    assert bench.all_events() == ["own-reading", "hit"]


def test_a_file_that_was_refused_is_read_by_gcc_each_time(bench: Bench) -> None:
    bench.write(a_c=MAIN + '_Pragma("pack(1)")\n')
    for expected in (["own-special", "miss"], ["own-special", "hit"]):
        bench.compile()
        assert bench.all_events() == expected


def test_other_flags_are_agreed_on_by_themselves(bench: Bench) -> None:
    bench.compile()
    for expected in (["miss"], ["own-reading", "hit"]):
        bench.all_events()
        bench.compile("front", "-DFRESH=1", "-fno-common")
        assert bench.all_events() == expected


@pytest.mark.parametrize("flag", ["-Wp,-MMD,deps", "-Wp,-MD,deps"])
def test_dependencies_are_those_of_gcc(bench: Bench, flag: str) -> None:
    (bench.folder / "sub").mkdir()
    names = [f"sub/a_header_with_a_long_name_{number}.h" for number in range(9)]
    for name in names:
        (bench.folder / name).write_text('#ifndef G\n#define G\n#endif\n#include "../h.h"\n')
    bench.write(h_h="#ifndef H\n#define H\n" + HEADER + "#endif\n")
    text = "".join(f'#include "{name}"\n#include "./{name}"\n' for name in names) + MAIN
    bench.write(a_c=text)
    bench.compile("/usr/bin/gcc", flag)
    theirs = (bench.folder / "deps").read_text()
    for expected in (["miss"], ["own-reading", "hit"]):
        (bench.folder / "deps").unlink()
        bench.compile("front", flag)
        assert bench.all_events() == expected
        assert (bench.folder / "deps").read_text() == theirs


def test_flags_without_nostdinc_are_gccs(bench: Bench) -> None:
    flags = [flag for flag in FLAGS if flag != "-nostdinc"]
    for event in ("miss", "hit"):
        assert bench.run("front", *flags, "-c", "-o", "out.o", "a.c").returncode == 0
        assert event in bench.events()


def test_the_bench_names_what_is_missing() -> None:
    command = [sys.executable, "-m", "bench.front_reading"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("bench.front_reading: no kernel; name a build")
    assert done.stderr.count("\n") == 1
