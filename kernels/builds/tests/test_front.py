# SPDX-License-Identifier: GPL-2.0-or-later
"""The compiler front: an answer of the store is the object that a clean compile makes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kernels.builds.compiled_files import CompiledFiles
from kernels.builds.front_program import FrontSettings, front_identity, place_front
from kernels.builds.front_sources import SOURCES, recipe_of_sources
from kernels.builds.tests.front_cases import (
    CHANGES,
    CONTEXTS,
    HEADER,
    LOST,
    MAIN,
    MISTAKES,
    PROMISES,
    SPREAD,
    SPREADING,
    Change,
)
from kernels.builds.tests.front_runs import FLAGS, IDENTITY, Bench
from kernels.builds.tests.pointer_cases import BEHIND, FAR, MORE, POINTING, Pointing

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory, program: Path) -> Bench:
    """A folder whose store knows HEADER and MAIN; a copy of it lies in "kept" beside it."""
    made = Bench(tmp_path_factory.mktemp("front") / "bench", program)
    made.write(h_h=HEADER, a_c=MAIN)
    made.compile()
    assert made.events() == ["miss"]
    shutil.copytree(made.folder, made.folder.with_name("kept"))
    return made


@pytest.fixture
def bench(prepared: Bench) -> Bench:
    """That folder as it was made, at the same place: objects hold its name."""
    shutil.rmtree(prepared.folder)
    shutil.copytree(prepared.folder.with_name("kept"), prepared.folder)
    return prepared


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name)
def test_an_object_after_a_change_is_that_of_a_clean_compile(bench: Bench, change: Change) -> None:
    assert HEADER.count(change.old) >= 1
    bench.write(h_h=HEADER.replace(change.old, change.new, 1))
    assert bench.compile("front") == bench.compile("clean")
    assert ("hit" in bench.events()) == change.hit
    assert bench.code("front") == bench.code("/usr/bin/gcc")


@pytest.mark.parametrize("case", POINTING, ids=lambda case: case.name)
@pytest.mark.parametrize(
    "other", ["", "int other(struct far *far) { return far->second; }\n"], ids=["", "after another"]
)
def test_what_only_points_to_a_structure_does_not_depend_on_its_fields(
    bench: Bench, case: Pointing, other: str
) -> None:
    flag = "-fno-strict-aliasing"
    bench.write(h_h=FAR, b_c=f'#include "h.h"\n{other}', a_c=f'#include "h.h"\n{case.source}\n')
    # Of declarations that another file has had compiled, this one has only those that it reaches.
    assert not other or bench.compile("front", flag, source="b.c")
    bench.events()
    bench.compile("front", flag)
    assert ("mentioned" in bench.events()) == case.mentioned
    bench.write(h_h=FAR.replace(*MORE))
    assert bench.code("front", flag) == bench.code("/usr/bin/gcc", flag)
    assert ("hit" in bench.events()) == case.hit


@pytest.mark.parametrize(("behind", "old", "new"), BEHIND.values(), ids=BEHIND)
def test_what_a_pointer_leads_to_is_missed_where_something_unused_looks_for_it(
    bench: Bench, behind: str, old: str, new: str
) -> None:
    bench.write(h_h=FAR + behind, a_c='#include "h.h"\nvoid entry(struct near *a) { a->width = 1; }\n')
    flags = ("-fno-strict-aliasing", "-Werror")
    bench.compile("front", *flags)
    assert FAR.count(old) == 1
    bench.write(h_h=FAR.replace(old, new) + behind)
    ours, theirs = (
        bench.run(program, *FLAGS, *flags, "-c", "-o", "out.o", "a.c")
        for program in ("front", "/usr/bin/gcc")
    )
    assert (ours.returncode, ours.stderr) == (theirs.returncode, theirs.stderr)
    assert theirs.returncode


def test_a_field_more_is_checked_once_whatever_else_a_source_includes(bench: Bench) -> None:
    """A function that names other members does not depend on it, whatever was known where its structures were defined."""
    users = (
        "struct hand { struct late *late; struct far *held; int (*ask)(struct far *far, int flags); };\n"
        "struct flagged { int flags; };\n"
        "static inline long behind(struct hand *hand) { return hand->held->first; }\n"
        "static inline int beside(struct flagged *a) { int room[2]; room[0] = a->flags; return room[0]; }\n"
    )
    flag, source = "-fno-strict-aliasing", "void entry(struct near *a) { a->width = 1; }\n"
    bench.write(h_h=FAR + users, late_h="struct late { int later; };\n", a_c=f'#include "h.h"\n{source}')
    bench.write(b_c=f'#include "late.h"\n#include "h.h"\n{source}')
    for _ in range(2):
        bench.events()
        assert bench.compile("front", flag)
        assert bench.compile("front", flag, source="b.c")
        bench.write(h_h=FAR.replace(*MORE) + users)
    events = bench.events()
    assert (events.count("hit"), events.count("checked")) == (2, 1)


@pytest.mark.parametrize(
    "text",
    ['extern double exp(double) asm("other");\n', "extern double exp(double) __attribute__((weak));\n"],
)
def test_a_library_function_that_only_a_builtin_uses_is_in(bench: Bench, text: str) -> None:
    bench.write(a_c='#include "h.h"\ndouble entry(double a)\n{\n\treturn __builtin_exp(a);\n}\n')
    bench.compile("front")
    bench.write(h_h=HEADER + text)
    assert bench.code("front") == bench.code("/usr/bin/gcc")


@pytest.mark.parametrize("text", MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_that_the_source_does_not_use_is_reported_as_by_the_compiler(
    bench: Bench, text: str
) -> None:
    bench.write(h_h=HEADER + text)
    for _ in range(2):  # nor does the first complaint make it good
        ours = bench.run("front", *FLAGS, "-c", "-o", "out.o", "a.c")
        theirs = bench.run("/usr/bin/gcc", *FLAGS, "-c", "-o", "out.o", "a.c")
        assert (ours.returncode, ours.stderr) == (theirs.returncode, theirs.stderr)
        assert theirs.stderr


@pytest.mark.parametrize(("old", "new", "user"), LOST.values(), ids=LOST)
def test_what_is_lost_to_something_unused_is_reported(bench: Bench, old: str, new: str, user: str) -> None:
    bench.write(h_h=HEADER + (user if new or "last_one" not in old else ""))
    bench.run("front", *FLAGS, "-c", "-o", "out.o", "a.c")
    bench.write(h_h=HEADER.replace(old, new, 1) + user)
    ours = bench.run("front", *FLAGS, "-c", "-o", "out.o", "a.c")
    theirs = bench.run("/usr/bin/gcc", *FLAGS, "-c", "-o", "out.o", "a.c")
    assert (ours.returncode, ours.stderr) == (theirs.returncode, theirs.stderr)
    assert theirs.stderr


@pytest.mark.parametrize(("good", "bad", "header"), CONTEXTS.values(), ids=CONTEXTS)
def test_what_is_right_in_one_source_is_read_again_where_other_things_stand_before_it(
    bench: Bench, good: str, bad: str, header: str
) -> None:
    bench.write(h_h=header, good_h=good, bad_h=bad, swap_h=good)
    bench.write(a_c='#include "good.h"\n#include "h.h"\nint one;\n')
    bench.write(b_c='#include "bad.h"\n#include "h.h"\nint two;\n')
    bench.write(c_c='#include "swap.h"\n#include "h.h"\nint three;\n')
    for source, complains in (("a.c", False), ("b.c", True), ("c.c", False)):
        bench.compare_words(source, complains=complains)
    bench.write(swap_h=bad)
    for _ in range(2):
        bench.compare_words("c.c", complains=True)


@pytest.mark.parametrize(("promise", "kept"), PROMISES.values(), ids=PROMISES)
def test_what_a_header_promises_and_a_source_does_not_keep_is_reported(
    bench: Bench, promise: str, kept: str
) -> None:
    bench.write(h_h=promise, late_h=kept, a_c='#include "h.h"\n#include "late.h"\nint one;\n')
    bench.write(b_c='#include "h.h"\nint two;\n')
    bench.compare_words("a.c", complains=False)
    bench.compare_words("b.c", complains=True)
    bench.write(late_h="")
    bench.compare_words("a.c", complains=True)


def test_what_nobody_uses_is_checked_with_the_registers_that_have_names(bench: Bench) -> None:
    register = HEADER + 'register unsigned long stack_pointer asm("rsp");\n'
    unused = "static inline unsigned long depth(void)\n{\n\treturn stack_pointer - NUMBER;\n}\n"
    bench.write(h_h=register + unused.replace("NUMBER", "1"))
    bench.compile()
    bench.write(h_h=register + unused.replace("NUMBER", "2"))
    bench.compile()
    assert bench.events()[-2:] == ["checked", "hit"]


@pytest.mark.parametrize("place", ["__builtin_LINE()", "__LINE__"])
def test_a_function_of_a_header_that_has_its_line_as_a_number_has_todays(bench: Bench, place: str) -> None:
    header = f"static inline int line(void)\n{{\n\treturn {place};\n}}\n"
    for before in ("", "\n"):
        bench.write(h_h=before + header, a_c='#include "h.h"\nint entry(void)\n{\n\treturn line();\n}\n')
        assert bench.code("front") == bench.code("/usr/bin/gcc")


def test_a_changed_header_is_checked_once_for_all_that_include_it(bench: Bench) -> None:
    bench.write(b_c=MAIN.replace("entry", "another"))
    bench.compile(source="b.c")
    for number, text in enumerate(("extern int fresh(int a);\n", "struct fresh { struct deep deep; };\n")):
        bench.write(h_h=HEADER.replace("struct unrelated", text + "struct unrelated"))
        bench.events()
        bench.compile()
        bench.compile(source="b.c")
        assert bench.events() == ["checked", "hit", "hit"], number


@pytest.mark.parametrize(
    "idle", ["static int idle(int a)\n{\n\treturn a;\n}\n", "static int idle[4] = { 1 };\n"]
)
def test_what_only_an_unused_function_uses_is_used(bench: Bench, idle: str) -> None:
    use = "idle(1)" if "(" in idle else "idle[1]"
    user = f"static inline int user(void)\n{{\n\treturn {use};\n}}\n"
    bench.write(h_h=HEADER + idle + user, b_c=MAIN.replace("entry", "another"))
    for source in ("a.c", "b.c"):
        bench.compare_words(source, complains=False)
    assert bench.events() == ["miss", "miss"]
    bench.write(h_h="extern int fresh(void);\n" + HEADER + idle + user)
    bench.compare_words("b.c", complains=False)
    assert bench.events() == ["checked", "hit"]
    bench.write(h_h=HEADER + idle)
    for source in ("a.c", "b.c"):
        bench.compare_words(source, complains=True)


def test_a_line_that_only_tells_where_a_warning_stands_is_not_checked_anew(bench: Bench) -> None:
    warning = '#define COMPLAIN() asm("# %c0" : : "i" (__LINE__))\n'
    body = "static inline int complains(int a)\n{\n\tCOMPLAIN();\n\treturn a;\n}\n"
    user = "static inline int user(void)\n{\n\treturn complains(1);\n}\n"
    bench.write(h_h=HEADER + warning + body + user)
    bench.compile()
    bench.events()
    bench.write(h_h="\n" + HEADER + warning + body + user)
    bench.compile()
    assert bench.events() == ["hit"]
    bench.write(h_h=HEADER + warning + body.replace("return a", "return a + 1") + user)
    bench.compile()
    assert bench.events() == ["checked", "hit"]


def test_a_function_that_ends_in_a_semicolon_is_kept_and_answered(bench: Bench) -> None:
    bench.write(a_c=MAIN.rstrip("\n") + ";\n")
    bench.compile()
    bench.write(h_h=HEADER + "extern int fresh(void);\n")
    assert bench.compile("front") == bench.compile("clean")
    assert bench.events() == ["miss", "checked", "hit"]


@pytest.mark.parametrize("text", SPREAD.values(), ids=SPREAD)
def test_lines_within_macros_are_the_compilers(bench: Bench, text: str) -> None:
    def both() -> None:
        assert bench.code("front") == bench.code("/usr/bin/gcc")

    bench.write(h_h=SPREADING, a_c='#include "h.h"\n' + text)
    both()
    # Moved, spread further, and spread elsewhere: an answer has today's numbers too.
    for old, new in (("int", "\nint"), (",\n", ",\n\n"), ("\n\n", "\n"), ("(", "(\n")):
        bench.write(a_c='#include "h.h"\n' + text.replace(old, new, 1))
        both()
    # The same by way of a header.
    bench.write(i_h=SPREADING + text, a_c='#include "i.h"\n')
    both()
    bench.write(i_h=SPREADING + text.replace(",\n", ",\n\n"))
    both()


def test_a_function_of_several_files_is_answered_with_the_lines_of_each(bench: Bench) -> None:
    table, rest = "\t1,\n\t2,\n", "\tsum += a * 3;\n\tif (sum > 7)\n\t\tsum -= table[a & 1];\n"
    function = '\nint entry(int a)\n{\n\tstatic const int table[] = {\n#include "table.h"\n\t};\n\tint sum = a;\n#include "rest.h"\n\treturn sum;\n}\n'
    numbers = 'enum {\n#include "numbers.h"\nLAST };\n'
    bench.write(table_h=table, rest_h="\n" * 20 + rest, numbers_h="ONE,\n" + "\n" * 40 + "TWO,\n")
    bench.write(a_c='#include "h.h"\n' + numbers + "int before(void)\n{\n\treturn LAST;\n}\n" + function)
    for change, events in (("", ["miss"]), ("extern int fresh(void);\n", ["checked", "hit"])):
        bench.write(h_h=change + HEADER)
        assert _lines(bench, "front") == _lines(bench, "/usr/bin/gcc")
        assert bench.events()[-len(events) :] == events
    # A file that moves by itself makes it another function, in its debugging information at least.
    bench.write(rest_h="\n" * 21 + rest)
    assert _lines(bench, "front") == _lines(bench, "/usr/bin/gcc")
    assert bench.events() == ["miss"]


def _lines(bench: Bench, compiler: str) -> list[list[str]]:
    """Return files, lines and addresses of an object's code, as a decoder tells them."""
    bench.compile(compiler, *([] if compiler == "front" else ["-gno-column-info"]))
    return sorted(row[:3] for row in bench.lines() if len(row) > 2 and row[1].isdigit())


def test_lines_of_an_answer_are_those_of_the_header_as_it_is_now(bench: Bench) -> None:
    bench.write(h_h="extern int fresh(void);\n" * 3 + HEADER)
    ours = bench.compile("front")
    assert "hit" in bench.events()
    listed = [row[:2] for row in bench.lines()]
    lines = HEADER.splitlines()
    place = lines.index("\treturn shape->width * FACTOR;") + 1 + 3
    assert ["h.h", str(place)] in listed
    assert ours == bench.compile("clean")


@pytest.mark.parametrize(
    "flags", [["-Wp,-MMD,deps"], ["-MD", "-MF", "deps"], ["-MMD", "-MF", "deps", "-MT", "x"]]
)
def test_an_answer_writes_the_dependency_file(bench: Bench, flags: list[str]) -> None:
    bench.compile("/usr/bin/gcc", *flags)
    theirs = (bench.folder / "deps").read_text()
    (bench.folder / "deps").unlink()
    bench.compile("front", *flags)
    assert "hit" in bench.events()
    assert (bench.folder / "deps").read_text() == theirs


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["-E", "a.c"], "flag"),
        (["-O2", "-S", "a.c", "-o", "a.s"], "flag"),
        (["-M", "a.c"], "flag"),
        (["-O2", "-c", "a.c"], "inputs"),
        (["-O2", "-c", "a.c", "b.c"], "inputs"),
        (["-O2", "-c", "a.S", "-o", "a.o"], "language"),
        (["-c", "a.c", "-o", "a.o"], "unoptimised"),
        (["-O2", "-O0", "-c", "a.c", "-o", "a.o"], "unoptimised"),
        (["-O2", "-g", "-c", "a.c", "-o", "a.o"], "debug"),
        (["-O2", "-fsanitize=undefined", "-c", "a.c", "-o", "a.o"], "unfit-flag"),
        (["-O2", "-fplugin=x.so", "-c", "a.c", "-o", "a.o"], "unfit-flag"),
        (["-O2", "-flto", "-c", "a.c", "-o", "a.o"], "unfit-flag"),
        (["-O2", "-x", "c", "-c", "a.c", "-o", "a.o"], "flag"),
        (["-O2", "--target=x86_64", "-c", "a.c", "-o", "a.o"], "flag"),
        (["-O2", "@flags", "-c", "a.c", "-o", "a.o"], "flag"),
        (["-O2", "-save-temps", "-c", "a.c", "-o", "a.o"], "flag"),
        (["a.o", "-o", "a"], "not-c"),
        (["--version"], "flag"),
    ],
)
def test_what_is_not_understood_is_the_compilers(bench: Bench, arguments: list[str], reason: str) -> None:
    ours, theirs = bench.run("front", *arguments), bench.run("/usr/bin/gcc", *arguments)
    assert (ours.returncode, ours.stdout) == (theirs.returncode, theirs.stdout)
    assert bench.events() == [reason]


def test_a_file_that_the_assembler_would_read_is_never_kept(bench: Bench) -> None:
    (bench.folder / "data").write_text("one")
    bench.write(a_c='asm(".section .data; .incbin \\"data\\"");\nint x;\n')
    bench.compile()
    assert bench.events() == ["incbin"]


def test_another_compiler_or_flag_is_another_object(bench: Bench, program: Path) -> None:
    bench.compile("front", "-fno-common")
    assert bench.events() == ["miss"]
    place_front(program, bench.folder / "front", FrontSettings("gcc", "cd" * 32, [], str(bench.store)))
    bench.compile()
    assert bench.events() == ["miss"]


def test_a_store_that_cannot_be_written_only_costs_time(bench: Bench, program: Path) -> None:
    place_front(
        program, bench.folder / "front", FrontSettings("gcc", IDENTITY, ["/nowhere"], "/nowhere/else")
    )
    assert bench.compile("front") == bench.compile("clean")


def test_stores_keep_the_newest_within_their_bound(bench: Bench, tmp_path: Path) -> None:
    stores = CompiledFiles(tmp_path / "stores")
    assert stores.take("trusted", bench.store) == {}
    assert stores.trim(1 << 30) == 0
    assert stores.trim(0) > 0
    assert [path for path in (tmp_path / "stores").glob("*/*/*") if path.is_file()] == []


def test_another_source_of_the_front_is_another_recipe(tmp_path: Path) -> None:
    same, other = (shutil.copytree(SOURCES, tmp_path / name) for name in ("same", "other"))
    with (other / "reach.cc").open("a") as file:
        file.write("\n")
    assert recipe_of_sources(same) == recipe_of_sources() != recipe_of_sources(other)


def test_a_fronts_identity_is_its_recipe_and_the_compilers_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    today = front_identity("gcc")
    assert front_identity("gcc") == today
    assert len(today) == 64
    assert front_identity("g++") != today
    monkeypatch.setattr("kernels.builds.front_sources.recipe_of_sources", lambda: "front of tomorrow")
    assert front_identity("gcc") != today
