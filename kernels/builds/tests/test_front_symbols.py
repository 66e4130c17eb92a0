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
    "extern int x, y;\ntypedef int z;\n": "static z __attribute__((cold, used)) f(void) { return 2; }\nint y = 1; int x = 2;\n",
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
    "an array's length in a structure compares": (VARIABLES, "struct held { int room[sizeof(&x == &y)]; };"),
    "an array's length in a prototype compares": (VARIABLES, "int held(int room[(&x == &y) + 1]);"),
    "a field's width compares": (VARIABLES, "struct held { int room : sizeof(&x == &y); };"),
    "an enumerator compares": (VARIABLES, "enum { SAME = sizeof(&x == &y) };"),
    "a type is that of a comparison": (VARIABLES, "extern __typeof__(&x == &y) same;"),
    "a parameter's type is that of a comparison": (FUNCTIONS, "int held(__typeof__(x == y) same);"),
    "an alignment compares": (
        VARIABLES,
        "struct held { int room __attribute__((aligned(sizeof(&x == &y)))); };",
    ),
    "an assertion among members compares": (
        VARIABLES,
        'struct held { int room; _Static_assert(sizeof(&x != &y) == 4, ""); };',
    ),
    "a type's size compares": (VARIABLES, "typedef char held[sizeof(&x == &y)];"),
    "an attribute stands before a type of the same name": (
        "extern int x, y;\ntypedef int z;\n",
        "static inline z same(void) { return &x == &y; }",
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


TYPELESS = {
    "a value": "y = 1; x = 2;\n",
    "nothing": "y; x;\n",
    "another name": "z, y; w, x;\n",
    "parentheses": "(y) = 1; (x) = 2;\n",
    "an attribute": "y __attribute__((aligned(8))); x __attribute__((aligned(8)));\n",
    "a name in assembly": 'y asm("why"); x asm("ex");\n',
}


@pytest.mark.parametrize("name", sorted(TYPELESS))
def test_a_variable_without_a_type_stands_in_gccs_order(name: str, bench: Bench) -> None:
    declared, unused = MET["variables are compared"]
    bench.compare_code((declared, f"{declared}{unused}\n"), TYPELESS[name], *FLAGS)


NAMED = {
    "a type before attributes": "static flag __attribute__((cold, used)) cold(void) { return 1; }\n",
    "a member": "int member;\n",
    "a parameter of a prototype": "int given = 1;\n",
    "a tag": "int room(void) { return 1; }\n",
}


def assert_needs_no_room(bench: Bench, header: str, source: str) -> None:
    """Assert that a source is answered, and rightly, when `struct room` has a member more (SIZE in the header)."""
    bench.write(h_h=header.replace("SIZE", ""), a_c=f'#include "h.h"\n{source}')
    bench.compile("front", *FLAGS)
    bench.events()
    bench.write(h_h=header.replace("SIZE", "more, "))
    assert bench.code("front", *FLAGS) == bench.code("/usr/bin/gcc", *FLAGS)
    assert bench.events()[-1] == "hit"


@pytest.mark.parametrize("name", sorted(NAMED))
def test_what_only_has_the_name_of_something_defined_is_not_needed(name: str, bench: Bench) -> None:
    header = """typedef _Bool flag;
struct room { int SIZE member; };
extern int later(struct room at, int given, flag on);
static inline flag get(struct room *at) { return at->member; }
"""
    assert_needs_no_room(bench, header, NAMED[name])


def test_a_member_leads_to_no_function_of_its_name(bench: Bench) -> None:
    header = """struct room { int SIZE member; };
static inline int get(struct room *at) { return at->member; }
struct used { int get; };
"""
    source = "int entry(struct used *at) { struct used copy = *at; return copy.get; }\n"
    assert_needs_no_room(bench, header, source)


LAST = "int entry(struct used *at) { return at->last; }\n"
# A declaration in a header, and a source for which the constants and types that it names matter.
MENTIONING = {
    "a value": ("static const int used[] = { 1, 8 * THREE, };", "int entry(int at) { return used[at]; }\n"),
    "a width": (
        "struct used { int field : 1 * THREE; };",
        "int entry(struct used *at) { return at->field; }\n",
    ),
    "a width of a cast": (
        "struct used { int field : (int)(1 * THREE); };",
        "int entry(struct used *at) { return at->field; }\n",
    ),
    "a length": ("struct used { char room[8 * THREE]; int last; };", LAST),
    "a length of a cast": ("struct used { char room[(int)(8 * THREE)]; int last; };", LAST),
    "a length of a word that is not known": (
        "struct used { char room[(int)(__real__ THREE)]; int last; };",
        LAST,
    ),
    "a length of a literal": (
        "struct used { char room[sizeof((char[]){ [8 * THREE] = 1 })]; int last; };",
        LAST,
    ),
    "a type of bits without a name": ("struct used { number : 4; int last; };", LAST),
    "a type behind a word that is not known": (
        "struct used { int q; __seg_gs number __attribute__((aligned(1))) *last; };",
        "int entry(struct used *at, int n) { return at->last[n]; }\n",
    ),
    "a type of a parameter without a name": (
        "extern int used(const number, int);",
        "int entry(void) { return used(1, 2); }\n",
    ),
    "an alignment": ("struct used { int one; int last __attribute__((aligned(1 * TWO))); };", LAST),
    "an alignment by a size": (
        "struct used { char one; unsigned long last __attribute__((aligned(sizeof(unsigned long) * TWO))); };",
        LAST,
    ),
    "an alignment of a type": (
        "struct one { char one; } __attribute__((aligned(4 * TWO)));\nstruct used { char first; struct one one; int last; };",
        LAST,
    ),
}


@pytest.mark.parametrize("name", sorted(MENTIONING))
def test_an_expression_in_a_declaration_leads_to_what_it_names(name: str, bench: Bench) -> None:
    constants = "enum { TWO = 2 };\nenum { THREE = 3 };\ntypedef unsigned char number;\n"
    declared, source = MENTIONING[name]
    more = constants.replace("= 3", "= 5").replace("= 2", "= 4").replace("char", "short")
    bench.compare_code((f"{constants}{declared}\n", f"{more}{declared}\n"), source, *FLAGS)


def test_a_warning_comes_back_with_the_constant_of_an_attribute(bench: Bench) -> None:
    header = "enum { AT = 2 };\nextern void get(void *a, void *b) __attribute__((nonnull(1 * AT)));\n"
    source = "void entry(void *b) { get(0, b); }\n"
    bench.compare_words_with(header, header.replace("= 2", "= 1"), source)


def test_a_width_takes_the_address_of_a_static_array(bench: Bench) -> None:
    header = "static int arr[2];\nextern void ext(void);\n"
    source = (
        "int entry(int *p) { arr[0] = 1; *p = 2; if (arr[0] != 1) ext(); return __builtin_constant_p(arr[0]); }\n"
        "void set(int v) { arr[0] = v; arr[1] = 3; }\n"
    )
    bench.compare_code(
        (header, f"{header}struct held {{ int : __builtin_constant_p(arr); }};\n"), source, *FLAGS
    )
