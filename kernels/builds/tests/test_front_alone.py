# SPDX-License-Identifier: GPL-2.0-or-later
"""A file that both preprocessors have agreed on is compiled from our own reading; whatever the compiler says, gcc reads it again."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernels.builds.front_program import compile_front
from kernels.builds.tests.front_cases import HEADER, MAIN
from kernels.builds.tests.front_runs import FLAGS, Bench
from kernels.tests.kept import kept

pytestmark = pytest.mark.process


class LoggedBench(Bench):
    """A folder whose front notes how it calls the compiler."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, compile_front(kept("front")))
        logged = folder / "logged"
        logged.mkdir()
        (logged / "gcc").write_text(f'#!/bin/sh\necho "$*" >> {folder}/calls\nexec /usr/bin/gcc "$@"\n')
        (logged / "gcc").chmod(0o755)
        for front in ("front", "clean"):
            settings = folder / front / "front.conf"
            settings.write_text(settings.read_text().replace("/usr/bin/gcc", f"{logged}/gcc"))

    def calls(self) -> list[str]:
        """Return what the compiler was called for since the last call: -E, -S or -fsyntax-only."""
        path = self.folder / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        kinds = ("-E", "-S", "-fsyntax-only")
        return [word for line in lines for word in line.split() if word in kinds]

    def said(self, compiler: str) -> str:
        """Return what compiling prints."""
        return self.run(compiler, *FLAGS, "-c", "-o", "out.o", "a.c").stderr


@pytest.fixture
def bench(tmp_path: Path) -> LoggedBench:
    """A folder with a file that was compiled once."""
    bench = LoggedBench(tmp_path / "bench")
    bench.write(h_h=HEADER, a_c=MAIN)
    bench.compile()
    assert "-E" in bench.calls()
    return bench


MORE = {
    "a function": "int more(int a) { return a + 1; }\n",
    "arguments over several lines": (
        "#define DO(x) do { x; } while (0)\nvoid one(void);\n"
        "void two(int a)\n{\n\tDO(if (a)\n\t\tone();\n\tone());\n\tone();\n}\n"
    ),
    "a macro first": (
        "void one(void);\n#define ONE one()\n#define IF if (a)\n"
        "void two(int a)\n{\n\tIF\n\t\tONE;\n\tONE;\n\tfor (;;)\n\t\tONE;\n}\n"
    ),
    "marks that could be read as one": "#define MINUS -\nint two(int a) { return a -MINUS- a - -a + +a; }\n",
    "a line far below": "\n" * 40 + "int two(int a)\n{\n" + "\n" * 40 + "\treturn __LINE__ + a;\n}\n",
    "a pragma": (
        '#pragma GCC diagnostic push\n#pragma GCC diagnostic ignored "-Wunused-variable"\n'
        "int two(void)\n{\n\tint unused;\n\treturn 2;\n}\n#pragma GCC diagnostic pop\n"
    ),
    "a file within a function": '\nint two(int a)\n{\n\tint b = a;\n#include "part.h"\n\treturn b;\n}\n',
}


@pytest.mark.parametrize("more", MORE.values(), ids=MORE)
def test_what_is_new_is_compiled_without_having_gcc_preprocess_it(bench: LoggedBench, more: str) -> None:
    bench.write(a_c=MAIN + more, part_h="\n\tb += a;\n\tb *= __LINE__;\n")
    made = bench.compile()
    assert bench.calls() in (["-S"], ["-fsyntax-only", "-S"])
    assert bench.events()[-1] == "miss"
    assert made == bench.compile("clean")
    assert bench.code("front") == bench.code("/usr/bin/gcc")


def test_a_changed_header_is_checked_without_having_gcc_preprocess_it(bench: LoggedBench) -> None:
    bench.write(h_h="extern int fresh(void);\n" + HEADER)
    assert bench.compile() == bench.compile("clean")
    assert bench.calls()[0] == "-fsyntax-only"
    assert bench.events()[-2:] == ["checked", "hit"]


WARNED = {
    "unused": "static int idle;\n",
    "of a macro": "#define NAME int unused\nint two(void)\n{\n\tNAME;\n\treturn 2;\n}\n",
    "an error": "int two(void) { return none; }\n",
}


@pytest.mark.parametrize("more", WARNED.values(), ids=WARNED)
def test_a_warning_is_told_as_gcc_tells_it_of_the_source(bench: LoggedBench, more: str) -> None:
    bench.write(a_c=MAIN + more)
    said = bench.said("front")
    assert "-E" in bench.calls()
    assert said == bench.said("/usr/bin/gcc") != ""


SPARED = (
    "#define IS_THERE(place) ((place) != 0)\nextern int shapes[3];\n"
    "int two(int a)\n{\n\treturn IS_THERE(shapes) ? a : 0;\n}\n"
)


def test_a_file_whose_text_alone_has_warnings_is_read_by_gcc_at_once_when_it_changes(
    bench: LoggedBench,
) -> None:
    bench.write(a_c=MAIN + SPARED)
    assert bench.said("front") == bench.said("/usr/bin/gcc") == ""
    assert bench.calls() == ["-S", "-E", "-S"]
    bench.write(a_c=MAIN + SPARED.replace("? a", "? a + 1"))
    made = bench.compile()
    assert bench.calls() == ["-E", "-S"]
    assert made == bench.compile("clean")


def test_now_and_then_gcc_reads_what_it_agreed_on_before(bench: LoggedBench) -> None:
    settings = bench.folder / "front/front.conf"
    settings.write_text(settings.read_text() + "prove 8\n")
    again = 0
    for number in range(40):
        bench.write(a_c=f"{MAIN}int more(int a) {{ return a + {number}; }}\n")
        bench.compile()
        again += bench.calls().count("-E") > 0
    assert 0 < again < 40


# With this flag a file needs parts of structures.
HOLLOW = "-fno-strict-aliasing"
STRUCTURE = """struct large {
	char a; long b; char c; long d; char e; long f; char g; long h; MORE char i; long last;
};
"""


def test_outlines_that_were_accepted_are_not_tried_again_with_other_numbers(bench: LoggedBench) -> None:
    def write(more: str) -> None:
        bench.write(h_h=STRUCTURE.replace("MORE", more), a_c=source)

    source = '#include "h.h"\nlong entry(struct large *a) { return a->last; }\n'
    write("")
    bench.compile("front", HOLLOW)
    assert bench.calls().count("-fsyntax-only") == 1
    for more in ("long another;", "int another[9];"):
        write(more)
        made = bench.compile("front", HOLLOW)
        assert "-fsyntax-only" not in bench.calls()
        assert bench.events()[-1] == "miss"
        assert made == bench.compile("clean", HOLLOW)
        bench.calls()


BEFORE = {
    "first": ("", True),
    "second": ('#include "g.h"\n', False),
    "behind what our own preprocessor leaves to gcc": ("#line 5\n", True),
    "behind what only gcc knows": ('#if __has_include("h.h")\n#endif\n', True),
}


@pytest.mark.parametrize(("first", "is_first"), BEFORE.values(), ids=BEFORE)
def test_a_precompiled_header_is_read_where_gcc_reads_it(
    bench: LoggedBench, first: str, is_first: bool
) -> None:
    bench.write(
        h_h="static const int kept = 1;\n",
        g_h="",
        a_c=f'{first}#include "h.h"\nint a(void) {{ return kept; }}\n',
    )
    bench.compile()
    bench.write(h_h="static const int kept = 2;\n")
    assert not bench.run("/usr/bin/gcc", *FLAGS, "-x", "c-header", "-o", "h.h.gch", "h.h").returncode
    bench.write(h_h="static const int kept = 3;\n")
    bench.all_events()
    assert bench.code("front") == bench.code("/usr/bin/gcc")
    assert (bench.all_events()[-1] == "miss") != is_first
