# SPDX-License-Identifier: GPL-2.0-or-later
"""The order of functions and variables in an object, which unreached declarations of a header decide too: gcc puts out what it met first."""

from __future__ import annotations

import pytest

from kernels.builds.tests.front_runs import Bench

pytestmark = pytest.mark.process
FLAGS = (
    "-fno-strict-aliasing",
    "-fno-strict-overflow",
    "-fno-delete-null-pointer-checks",
    "-mcmodel=kernel",
    "-fno-common",
    "-w",
)
VARIABLES = "extern int x, y, z;\n"
FUNCTIONS = "extern int x(int), y(int), z(int);\n"
HEADS = "struct head { struct head *next; };\nextern struct head x, y, z;\n"
OLD_STYLE = "extern int x(), y();\n"
ALIASES = "extern int x(int), y(int), w(int);\n"
DEFINED = {
    OLD_STYLE: "int y(a) int a; { return a + 1; }\nint x(a) int a; { return a + 2; }\n",
    ALIASES: 'int w(int a) { return a; }\nextern int y(int) __attribute__((alias("w")));\nextern int x(int) __attribute__((alias("w")));\n',
    VARIABLES: "int y = 1; int x = 2; int z = 3;\n",
    FUNCTIONS: "int y(int a) { return a + 1; }\nint x(int a) { return a + 2; }\nint z(int a) { return a + 3; }\n",
    HEADS: "struct head y = {&y}; struct head x = {&x}; struct head z = {&z};\n",
}
MET = {
    "variables are compared": (VARIABLES, "static inline int same(void) { return &x == &y; }"),
    "variables are compared where nothing is computed": (
        VARIABLES,
        "static inline unsigned long same(void) { return sizeof(&x == &y); }",
    ),
    "variables are put in order": (VARIABLES, "static inline int *least(void) { return &x < &y ? &x : &y; }"),
    "functions are compared as numbers": (
        FUNCTIONS,
        "static inline int later(void) { return (unsigned long)x > (unsigned long)y; }",
    ),
    "a macro compares with a variable": (
        VARIABLES,
        "#define is_valid(p) ((p) != &x)\nstatic inline int valid(void) { return is_valid(&z); }",
    ),
    "a list ends at its head": (HEADS, "static inline int empty(void) { return z.next == &x || &x == &y; }"),
    "functions are compared": (FUNCTIONS, "static inline int same(void) { return x == y; }"),
    "functions in the old style are compared": (
        OLD_STYLE,
        "static inline int same(void) { return x == y; }",
    ),
    "aliases are compared": (ALIASES, "static inline int same(void) { return x == y; }"),
    "a choice of functions is compared": (
        FUNCTIONS,
        "static inline int same(int n) { return (n ? x : z) == x; }",
    ),
}


@pytest.mark.parametrize("name", sorted(MET))
def test_functions_and_variables_stand_in_gccs_order(name: str, bench: Bench) -> None:
    declared, unused = MET[name]
    bench.compare_code((declared, f"{declared}{unused}\n"), DEFINED[declared], *FLAGS)


def test_a_first_compilation_keeps_gccs_order_where_another_file_has_read_the_header(bench: Bench) -> None:
    header = f"{VARIABLES}{MET['variables are compared'][1]}\n"
    bench.write(h_h=header, a_c='#include "h.h"\nint entry(void) { return 3; }\n')
    bench.compile("front", *FLAGS)
    bench.write(a_c=f'#include "h.h"\n{DEFINED[VARIABLES]}')
    assert bench.code("front", *FLAGS) == bench.code("/usr/bin/gcc", *FLAGS)
