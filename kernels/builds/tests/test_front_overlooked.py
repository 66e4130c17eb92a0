# SPDX-License-Identifier: GPL-2.0-or-later
"""Changes of headers that no name in the file reaches, found when the front was attacked a second time, by cases that it answered."""

from __future__ import annotations

import pytest

from kernels.builds.tests.front_runs import Bench
from kernels.tests.cases import cases

pytestmark = pytest.mark.process
OTHER = "extern int other(int);\n"
RETURNS = "int entry(void) { return 2; }\n"
PLAIN = "struct s { char a; long b; short c; int d; long e; long f; long g; long h; long i; char text[20]; char j; };\n"
LARGER = PLAIN.replace("char j;", "char j; long k[5];")
BYTES = "struct s { char a; char b; char c; char d; char e; char f; char g; char h; };\n"
MORE_BYTES = BYTES.replace("char h;", "char h; char k[8];")
USED = "extern void take(void *);\n"
BESIDE = "struct s { long b; short c; int d; int here; MORE int there; long third; long apart; long i; };\n"
CHOOSES = "int entry(struct s *a, int b) { return b ? a->here : a->there; }\n"
HELD = (
    "struct in { int a; volatile int x; };\n"
    "struct s { long b; short c; int d; int here; int there; long third; long apart; long i; MORE char text[4]; };\n"
)
PASSES = (
    "static __attribute__((noinline)) long part(struct s *a) { return a->third + a->apart; }\n"
    "long entry(struct s *a, struct s *b) { return part(a) + part(b); }\n"
)
BEHIND = (
    "struct behind { long a, b; };\n"
    "static __attribute__((noinline)) long part(struct behind *a) { return a->a + a->b; }\n"
    "static __attribute__((noinline)) long middle(struct s *a) { return part((void *)a) + 1; }\n"
    "long entry(struct s *a, struct s *b) { return middle(a) + middle(b); }\n"
)
ASKED = "struct o { MORE char m; };\nextern struct o ov;\nextern struct o *op;\n" + HELD.replace(
    "MORE", "NEXT"
)
MANY = "if (state != 1) { other(1); other(2); other(3); other(4); other(5); other(6); other(7); other(8); } "
WORK = (
    "static int work(int *p) { state = 1; *p = 2; " + MANY + "return aa + 3; }\n"
    "int e1(int *p) { return work(p); }\nint e2(int *p) { return work(p) + 5; }\nint e3(int *p) { return work(p) + 6; }\n"
    "int get(void) { return state; }\n"
)
STOPS = "typedef void fn_t(void);\nextern void stop(void);\nstatic inline void gg(void) { MORE }\n"
CALLS = "int entry(int a) { if (a) stop(); return 3; }\n"
OWN_FLAGS = '__attribute__((optimize("strict-aliasing"))) '
USE = "long use(struct s *x) { return x->b; }\n"
SIZE = "(unsigned long)((struct s *)0 + 1)"


def changed(text: str, old: str, new: str) -> tuple[str, str]:
    """Return the text with either in the place of MORE."""
    return text.replace("MORE", old), text.replace("MORE", new)


def held(old: str, new: str) -> tuple[str, str, str]:
    """Return headers whose structure has either member, and functions that a structure without volatile ones is taken apart for."""
    return (*changed(HELD, old, new), PASSES)


# Old header, new header, source.
OBJECTS = {
    "an empty structure that is filled": ("struct s { };\n", "struct s { int a; };\n", BEHIND),
    "a structure of 64 KiB that is only passed": (
        "struct s { char c[65535]; };\n",
        "struct s { char c[65536]; };\n",
        BEHIND,
    ),
    "a structure of 64 KiB": held("char large[65400];", "char large[65600];"),
    "an empty member for an assertion": (
        *changed(BESIDE, '_Static_assert(1, "");', "struct { } none;"),
        CHOOSES,
    ),
    "an empty member for a semicolon": (*changed(BESIDE, ";", "struct { } none;"), CHOOSES),
    "a volatile member in place of a pointer": held(
        "struct { int a; volatile int x; } *y;", "struct { int a; volatile int x; } y;"
    ),
    "a structure in place of a function": held("struct in (*y)(void);", "struct in y;"),
    "a structure in place of two pointers": held("struct in *y, *z;", "struct in y, z;"),
    "a volatile member by typeof": (
        *changed(ASKED.replace("NEXT", "__typeof__(ov.m) first;"), "", "volatile"),
        PASSES,
    ),
    "a volatile member by typeof of a pointer's": (
        *changed(ASKED.replace("NEXT", "__typeof__(op->m) first;"), "", "volatile"),
        PASSES,
    ),
    "a pragma of the source's": (
        "struct s { int a; char b; long c; short d; int e; long f; long g; long h; long i; };\n",
        "struct s { int a; short b; long c; short d; int e; long f; long g; long h; long i; };\n",
        '#pragma pack(1)\n#include "h.h"\nlong use(struct s *x) { return x->c; }\n',
    ),
    "a value of a choice": (
        PLAIN,
        LARGER,
        "int entry(struct s *a, struct s *b, int x) { return a->text[0] + (x ? a[0] : b[0]).text[x]; }\n",
    ),
    "a value of a statement": (
        PLAIN,
        LARGER,
        "int entry(struct s *a, int x) { return a->text[0] + ({ struct s *c = a; x++; c[0]; }).text[x]; }\n",
    ),
    "a volatile value": (
        BYTES,
        MORE_BYTES,
        USE + "void entry(struct s *p) { (void)*(volatile __typeof__(*p) *)p; }\n",
    ),
    "a volatile value of a list": (
        BYTES,
        MORE_BYTES,
        USE + "void entry(struct s *p) { __typeof__(p[0]) volatile *q = p; q[0]; }\n",
    ),
    "a parameter as long as a sum": (
        PLAIN,
        LARGER,
        USED + f"long entry(struct s *a, char (*q)[{SIZE}]) {{ q++; take(q); return a->b; }}\n",
    ),
    "a structure as long as a sum": (
        PLAIN,
        LARGER,
        USE
        + f"struct own {{ char x[{SIZE}]; int after; }};\nint entry(struct own *o) {{ return o->after; }}\n",
    ),
    "an alignment by a sum": (
        PLAIN,
        LARGER,
        USED
        + f"long entry(struct s *a) {{ char x[64] __attribute__((aligned({SIZE} > 100 ? 64 : 16))); take(&x); return a->b; }}\n",
    ),
    "a layout with a sum": (
        *changed(
            "struct o;\ntypedef struct o *opt;\nstruct o { int a; MORE };\n"
            "struct s { int a; char pad[(long)((opt)0 + 1)]; int c; int d; int e; int f; int g; int h; };\n",
            "",
            "int k;",
        ),
        "int entry(struct s *x) { return x->c; }\n",
    ),
    "a second static variable's address": (
        OTHER + "static int aa, state;\n",
        OTHER + "static int aa, state;\nstatic inline int *get_state(void) { return &state; }\n",
        WORK,
    ),
    "a thread's static variable": (
        OTHER + "static int aa;\nstatic __thread int state;\n",
        OTHER
        + "static int aa;\nstatic __thread int state;\nstatic inline int *get_state(void) { return &state; }\n",
        WORK,
    ),
    "a volatile type by typeof": (
        "extern volatile int v;\n",
        "extern volatile int v;\ntypedef __typeof__(v) vt;\nstatic const vt w = 5;\n",
        RETURNS,
    ),
    "a function that does not return, by its type": (*changed(STOPS, "", "volatile fn_t stop;"), CALLS),
    "a function in brackets, by its type": (*changed(STOPS, "", "volatile fn_t (stop);"), CALLS),
    "a function behind a pointer": (
        *changed(STOPS, "", "volatile fn_t *p = (volatile fn_t *){0}, stop;"),
        CALLS,
    ),
    "an alignment of a type of arrays": (
        *changed(
            "static inline unsigned long gg(void) { return MORE; }\n",
            "20",
            "sizeof(const int __attribute__((aligned(64))) [20])",
        ),
        "static const int table[20] = {5, 4, 1};\nint entry(unsigned i) { return table[i]; }\n",
    ),
    "a function that an atomic operation becomes": (
        OTHER,
        OTHER
        + "extern __int128 __atomic_fetch_add_16(volatile void *, __int128, int) __attribute__((noreturn));\n",
        "int entry(__int128 *p) { return __atomic_fetch_add(p, 1, 5); }\nint next(int a) { return a + 1; }\n",
    ),
    "a function that a body declares behind a pointer": (
        *changed(
            "extern const char *name(int);\nstatic inline void gg(void) { MORE }\n",
            "",
            "const char *p, *name(int) __attribute__((const));",
        ),
        "long entry(int a) { return (long)name(a) + (long)name(a); }\n",
    ),
    "what a structure holds, in a function with flags of its own": (
        *changed(
            "struct t { int x; int y; };\nstruct s { long a; int b; short c; int d; long e; long f; long g; MORE };\n",
            "int u1, u2;",
            "struct t u;",
        ),
        OWN_FLAGS
        + "static __attribute__((noinline)) void set(struct s *p) { p->b = 1; }\n"
        + OWN_FLAGS
        + "int entry(struct s *p, struct t *q) { int a = q->x; set(p); return a + q->x; }\n",
    ),
    "two functions that do not return": (
        *changed(STOPS, "", "_Noreturn void first(void), stop(void);"),
        CALLS,
    ),
    "a function in brackets that does not return": (
        *changed(STOPS, "", "_Noreturn void (stop)(void);"),
        CALLS,
    ),
    "a constant function by typeof": (
        *changed(OTHER + "static inline void gg(void) { MORE }\n", "", "const __typeof__(other) other;"),
        "int entry(int a) { return other(a) + other(a); }\n",
    ),
}
UNUSED = "static int cold(void) { return 1; }\nstruct m { int a, cold; };\nMORE\n"
USES = "static inline int g(void) { return cold(); }"
CONDITION = "int entry(int a) {{ int x = a; {} return x; }}\n"
# Old header, new header, source, flags: the second brings a warning or an error.
WARNED = {
    "a function that frees what another returns": (
        *changed(
            "extern void give_back(void *);\nMORE\n",
            "",
            "extern void *obtain(void) __attribute__((malloc(give_back)));",
        ),
        "int entry(void) { int a = 1; give_back(&a); return 0; }\n",
        "-Wall",
    ),
    "a pragma of the source's": (
        OTHER,
        OTHER + "static inline int g(unsigned a) { return a < -1; }\n",
        '#pragma GCC diagnostic warning "-Wsign-compare"\n#include "h.h"\n' + RETURNS,
        "-Wall",
    ),
    "an error by a pragma of the source's": (
        OTHER,
        OTHER + "struct q { char a; int b; };\ntypedef char chk[sizeof(struct q) == 8 ? 1 : -1];\n",
        '#pragma pack(1)\n#include "h.h"\n' + RETURNS,
        "-w",
    ),
    "a function of the source's that a header used": (
        OTHER + "static inline int g(void) { return f(); }\n",
        OTHER + "static inline int g(void) { return 1; }\n",
        'static int f(void) { return 1; }\n#include "h.h"\n' + RETURNS,
        "-Wall",
    ),
    "an attribute of that name": (
        *changed(UNUSED, USES, "extern void f(void) __attribute__((cold));"),
        RETURNS,
        "-Wall",
    ),
    "an operand of that name": (
        *changed(UNUSED, USES, 'static inline void g(int x) { __asm__("" : : [cold] "r"(x)); }'),
        RETURNS,
        "-Wall",
    ),
    "a member of that name in a structure": (
        *changed(UNUSED, USES, "static inline int g(void) { return __builtin_offsetof(struct m, cold); }"),
        RETURNS,
        "-Wall",
    ),
    "a pointer of that name": (
        *changed(UNUSED, USES, "struct ops { void *(*cold)(int); };"),
        RETURNS,
        "-Wall",
    ),
    "a pointer behind a type that is asked for": (
        *changed(
            UNUSED, USES, "static inline int g(void) { __typeof__(sizeof(1)) *(*cold) = 0; return !cold; }"
        ),
        RETURNS,
        "-Wall",
    ),
    "a second variable in brackets": (
        *changed(
            UNUSED, USES, "static inline int g(void) { int a = 1, (*cold)(void) = 0; return !cold + a; }"
        ),
        RETURNS,
        "-Wall",
    ),
    "a parameter in brackets": (
        *changed(UNUSED, USES, "typedef void *(*fn_t)(int (cold));"),
        RETURNS,
        "-Wall",
    ),
    "a variable of whatever type": (
        *changed(UNUSED, USES, "static inline int g(void) { __auto_type cold = 1; return cold; }"),
        RETURNS,
        "-Wall",
    ),
    "a parameter in the old style": (
        *changed(UNUSED, USES, "static inline int g(cold) int cold; { return cold; }"),
        RETURNS,
        "-Wall",
    ),
    "a second variable": (
        *changed(
            "static int aa, state;\nstatic inline int g(void) { return aa; }\nMORE\n",
            "static inline int h(void) { return state; }",
            "",
        ),
        RETURNS,
        "-Wall",
    ),
    "a constant by a sum": (
        *changed(
            "struct o { int a; MORE };\n"
            "static inline int g(void) { enum { E = 1 / ((unsigned long)((struct o *)0 + 1) == 4) }; return E; }\n",
            "",
            "int b;",
        ),
        RETURNS,
        "-w",
    ),
}
# A source without a warning, one with.
COLUMNS = {
    "a label on its own line": (
        CONDITION.format("if (a)\n\tlab:\n\t\tx++;\nx--;"),
        CONDITION.format("if (a)\n  lab:\n    x++;\n  x--;"),
    ),
    "tabs and blanks where gcc preprocesses": (
        '_Pragma("GCC diagnostic push")\n' + CONDITION.format("\n\tif (a)\n\t\tx++;\n\tx--;"),
        '_Pragma("GCC diagnostic push")\n' + CONDITION.format("\n\tif (a)\n\t\tx++;\n                x--;"),
    ),
    "a switch over a macro": (
        "#define Q x++; x--\n" + CONDITION.format("switch (a) case 1: x++; x--;"),
        "#define Q x++; x--\n" + CONDITION.format("switch (a) case 1: Q;"),
    ),
    "a label before a macro": (
        "#define Q x++; x--\n" + CONDITION.format("if (a) lab: x++; x--;"),
        "#define Q x++; x--\n" + CONDITION.format("if (a) lab: Q;"),
    ),
}
QUICK = {"a volatile member in place of a pointer", "a pragma of the source's", "a value of a choice"}
QUICK_WARNED = {"a pragma of the source's", "a function of the source's that a header used"}


@pytest.mark.parametrize("name", cases(OBJECTS, QUICK))
def test_an_object_is_gccs_with_either_header(bench: Bench, name: str) -> None:
    *headers, source = OBJECTS[name]
    bench.compare_code(headers, source, "-fno-strict-aliasing", "-w")


@pytest.mark.parametrize("name", cases(WARNED, QUICK_WARNED))
def test_what_a_header_brings_is_told(bench: Bench, name: str) -> None:
    bench.compare_words_with(*WARNED[name])


@pytest.mark.parametrize("name", COLUMNS)
def test_where_a_statement_stands_is_told(bench: Bench, name: str) -> None:
    for source, complains in zip((*COLUMNS[name], COLUMNS[name][1]), (False, True, True), strict=True):
        bench.write(a_c=source)
        bench.compare_words("a.c", "-Wno-unused-label", complains=complains)


def test_a_tab_of_another_width_is_left_to_the_compiler(bench: Bench) -> None:
    bench.write(a_c=CONDITION.format("\n\tif (a)\n\t\tx++;\n    x--;"))
    bench.compare_words("a.c", complains=False)
    bench.compare_words("a.c", "-ftabstop=2", complains=True)


@pytest.mark.parametrize(
    ("flag", "source"),
    [
        ("-fmacro-prefix-map=a.=b.", "const char *entry(void) { return __builtin_FILE(); }\n"),
        ("-finput-charset=latin1", 'const char *text = "\u00e9";\nint wide[] = L"\u00e9";\n'),
    ],
    ids=["the file's own name", "another set of characters"],
)
def test_what_a_preprocessed_text_does_not_keep_is_gccs(bench: Bench, flag: str, source: str) -> None:
    bench.compare_code((OTHER, OTHER + "extern int more;\n"), source, "-w", flag)


def test_lines_that_the_sources_assembly_names_stay(bench: Bench) -> None:
    source = 'int entry(int a) {\n a = other(a);\n __asm__ volatile(".loc 1 5 0\\n\\tnop");\n return other(a);\n}\n'
    rows = []
    for lines in ("", "\n\n"):
        bench.write(h_h=OTHER, a_c='#include "h.h"\n' + lines + source)
        for compiler in ("front", "clean"):
            bench.compile(compiler)
            rows.append(bench.lines())
    assert rows[0] == rows[1]
    assert rows[2] == rows[3]
