# SPDX-License-Identifier: GPL-2.0-or-later
"""gcc asks some things of a structure as a whole, so its code may depend on members that a source never names."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from kernels.builds.tests.front_runs import Bench

pytestmark = pytest.mark.process
FLAGS = ("-fno-strict-aliasing", "-w")
HEADER = """typedef int word;
typedef word *words;
struct deep { word own; int other; };
union mixed { struct deep deep; long other; };
struct large {
	char first __attribute__((aligned(64)));
	char second;
	long third;
	union mixed mixed;
	words list, more[2];
	int *pointer;
	void *room[100];
	int *__restrict one, *__restrict other;
	struct { int events; int count[4]; } seen;
	int here; int there;
	long apart;
	char text[20];
	unsigned char last[];
};
int take(long);
"""
# IPA-SRA passes the two members instead of the pointer, unless the structure is empty, has 64 KiB, a volatile field or an array without a size.
PASSES = (
    "static __attribute__((noinline)) long part(struct large *a) { return a->third + a->apart; }\n"
    "long entry(struct large *a, struct large *b) { return part(a) + part(b); }\n"
)
THROUGH = (
    "struct behind { long a, b; };\n"
    "static __attribute__((noinline)) long part(struct behind *a) { return a->a + a->b; }\n"
    "static __attribute__((noinline)) long middle(struct large *a) { return part((void *)a) + 1; }\n"
    "long entry(struct large *a, struct large *b) { return middle(a) + middle(b); }\n"
)
PLAIN = HEADER.replace("last[]", "last[4]")


class Case(NamedTuple):
    """A change of the header that no name in the source reaches, but that changes gcc's code."""

    old: str
    new: str
    source: str
    header: str = PLAIN


CASES = {
    "an array without a size": Case("last[4]", "last[]", PASSES),
    "an array that had no size": Case("last[]", "last[4]", PASSES, HEADER),
    "an array type without a size": Case(
        "bytes[4];",
        "bytes[];",
        PASSES,
        "typedef char bytes[4];\n" + PLAIN.replace("unsigned char last[4]", "bytes last"),
    ),
    "a volatile field": Case("char second", "volatile char second", PASSES),
    "a volatile field, spelled otherwise": Case("char second", "char __volatile__ second", PASSES),
    "a volatile field of a field": Case("int other; };", "int volatile other; };", PASSES),
    "a volatile type": Case("typedef int word", "typedef volatile int word", PASSES),
    "a field of a variable's type": Case(
        "extern int kept;",
        "extern volatile int kept;",
        PASSES,
        "extern int kept;\n" + PLAIN.replace("char second", "__typeof__(kept) second"),
    ),
    "a field that was volatile": Case(
        "volatile char second", "char second", PASSES, PLAIN.replace("char second", "volatile char second")
    ),
    "a volatile field beside a pointer to one": Case(
        "char second;",
        "volatile char second;",
        PASSES,
        PLAIN.replace("int *pointer", "volatile int *pointer"),
    ),
    "the alignment, by an attribute": Case(
        "last[4];\n};",
        "last[4];\n} __attribute__((aligned(64)));",
        'void entry(struct large *c) { for (long i = 0; i < 4; i++) { struct large *a; asm("mov %%gs:0,%0" : "=r" (a));'
        ' if (a->seen.count[i]) { asm("mov %%gs:0,%0" : "=r" (a)); take(a->seen.count[i]); } } }\n',
    ),
    "an empty field between two": Case(
        "int here;",
        "int here; struct {} none;",
        "int entry(struct large *a, int b) { return b ? a->here : a->there; }\n",
    ),
    "fields behind a restrict pointer": Case(
        "void *room[100];",
        "".join(f"void *room{number};" for number in range(100)),
        "int entry(struct large *__restrict a) { *a->one = 1; *a->other = 2; return *a->one; }\n",
    ),
    "a structure that is only passed on": Case("char second", "volatile char second", THROUGH),
    "64 KiB in two dimensions": Case(
        "text[200]", "text[256][256]", THROUGH, PLAIN.replace("text[20]", "text[200][256]")
    ),
    "64 KiB by an expression": Case("'A' * 900", "'z' * 900", THROUGH, PLAIN.replace("20", "'A' * 900")),
    "64 KiB by an alignment": Case("char second", "char second __attribute__((aligned(65536)))", THROUGH),
    "64 KiB by a vector": Case("char second", "char second __attribute__((vector_size(65536)))", THROUGH),
    "64 KiB by another structure's size": Case(
        "other[9]",
        "other[99]",
        THROUGH,
        "struct in { long other[9]; };\nstruct large { struct in all[99]; };\n",
    ),
    "a field that was none": Case("int;", "int a;", THROUGH, "struct large { int; };\n"),
    "a union's volatile field": Case(
        "long b;",
        "volatile long b;",
        THROUGH.replace("struct large", "union large"),
        "union large { int a; long b; };\n",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_an_object_is_gccs_after_a_change_of_what_no_name_reaches(
    tmp_path: Path, program: Path, name: str
) -> None:
    bench, case = Bench(tmp_path / "bench", program), CASES[name]
    assert case.header.count(case.old) == 1
    bench.write(h_h=case.header, a_c=f'#include "h.h"\n{case.source}')
    before = bench.code("front", *FLAGS)
    assert before == bench.code("/usr/bin/gcc", *FLAGS)
    bench.write(h_h=case.header.replace(case.old, case.new))
    after = bench.code("/usr/bin/gcc", *FLAGS)
    assert after != before, "gcc does not look at this any more"
    assert bench.code("front", *FLAGS) == after


def test_a_change_of_another_member_is_answered(tmp_path: Path, program: Path) -> None:
    bench = Bench(tmp_path / "bench", program)
    bench.write(h_h=HEADER, a_c=f'#include "h.h"\n{PASSES}')
    bench.compile("front", *FLAGS)
    bench.write(
        h_h=HEADER.replace("char second", "unsigned char second").replace(
            "typedef int word", "typedef unsigned word"
        )
    )
    bench.events()
    assert bench.code("front", *FLAGS) == bench.code("/usr/bin/gcc", *FLAGS)
    assert bench.events()[-1] == "hit"


def test_where_gcc_refuses_the_example_all_that_a_structure_needs_counts(
    tmp_path: Path, program: Path
) -> None:
    bench, flags = Bench(tmp_path / "bench", program), (FLAGS[0], "-Werror=suggest-attribute=pure")
    source = THROUGH.replace("long entry(", "void entry(long *to, ").replace(
        "return middle(a) +", "*to = middle(a) +"
    )
    for second in ("char second", "volatile char second", "unsigned char second"):
        bench.write(h_h=PLAIN.replace("char second", second), a_c=f'#include "h.h"\n{source}')
        bench.events()
        assert bench.code("front", *flags) == bench.code("/usr/bin/gcc", *flags)
        assert bench.events()[-1] == "miss"
    bench.compile("front", *flags)
    assert bench.events() == ["hit"]
