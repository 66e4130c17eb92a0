# SPDX-License-Identifier: GPL-2.0-or-later
"""Structures that a header names behind a '*' before it defines them, and then holds by the type that it made of the name."""

from __future__ import annotations

import pytest

from kernels.builds.tests.front_runs import Bench
from kernels.tests.cases import cases

pytestmark = pytest.mark.process
FLAGS = ("-fno-strict-aliasing", "-mcmodel=kernel", "-w")
SMALL, LARGE = "struct o { int v; };\n", "struct o { int v; long w, ww; };\n"
HOLDS = "struct s { long b; o_t x; short c; int d; long e; long third; long apart; long i; char j; };\n"
READS = "long entry(struct s *a) { return a->third + a->b; }\n"
NAMED = {
    "a second name of a type": "typedef struct o *op, o_t;",
    "a second name behind two pointers": "typedef struct o *op, **opp, o_t;",
    "a second name in parentheses": "typedef struct o *op, (o_t);",
    "a second name behind a function's": "typedef struct o *(*fn)(int, char), o_t;",
    "a second name behind a qualifier": "typedef struct o const *op, o_t;",
    "the type of a second variable": "extern struct o *v, w;\ntypedef __typeof__(w) o_t;",
    "the type of what a variable points to": "extern struct o *v;\ntypedef __typeof__(*v) o_t;",
    "the type of what nothing points to": "typedef __typeof__(*(struct o *)0) o_t;",
    "the type of what a member points to": "struct q { struct o *l; };\nextern struct q *qp;\ntypedef __typeof__(*qp->l) o_t;",
    "the type of what a function returns": "extern struct o *g(void);\ntypedef __typeof__(*g()) o_t;",
    "the type of a variable of that type": "extern struct o *v;\nextern __typeof__(*v) w;\ntypedef __typeof__(w) o_t;",
}
QUICK = ("a second name of a type", "the type of what a variable points to")


@pytest.mark.parametrize("name", cases(NAMED, QUICK))
def test_a_structure_that_is_held_moves_what_comes_after_it(name: str, bench: Bench) -> None:
    headers = [f"{NAMED[name]}\n{size}{HOLDS}" for size in (SMALL, LARGE)]
    bench.compare_code(headers, READS, *FLAGS)


@pytest.mark.parametrize("name", QUICK)
def test_an_assertion_that_fails_by_such_a_structure_is_told(name: str, bench: Bench) -> None:
    asserts = "struct t { o_t x; };\ntypedef char asserted[sizeof(struct t) == 4 ? 1 : -1];\n"
    old, new = (f"{NAMED[name]}\n{size}{asserts}" for size in (SMALL, LARGE))
    bench.compare_words_with(old, new, "int entry(void) { return 1; }\n", *FLAGS)
