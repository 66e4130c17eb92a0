# SPDX-License-Identifier: GPL-2.0-or-later
"""Changes of headers that no name in the file reaches: each of these once led to a wrong object or a lost warning."""

from __future__ import annotations

import pytest

from kernels.builds.tests.front_runs import Bench
from kernels.tests.cases import cases

pytestmark = pytest.mark.process
OTHER = "extern int other(int);\n"
PLAIN = "struct s { char a; long b; short c; int d; long e; long f; long g; long h; long i; char j; };\n"
LARGER = PLAIN.replace("char j;", "char j; long k[5];")
BYTES = "struct s { char a; char b; char c; char d; char e; char f; char g; char h; };\n"
MORE_BYTES = BYTES.replace("char h;", "char h; char k[8];")
HELD = (
    "typedef struct t t_t;\nstruct t { int v; };\n"
    "struct s { int one; t_t x; long a2; long a3; char a4; long apart; int third; short a7; long a8; };\n"
)
POINTERS = (
    "struct s { int *one, *other; int a1; int a2; long a3; long a4; long a5; long a6; void *room[100]; };\n"
)
TRAIT = (
    "typedef struct t t_t;\nstruct t { int v; long w; };\n"
    "struct s { long e0; long b; long e1; long e2; long e3; long e4; long e5; t_t x; };\n"
)
USES = "long use(struct s *x) { return x->b; }\n"
USED = "extern void take(void *);\nextern void show(int, ...);\n"
MANY = "if (STATE != 1) { other(1); other(2); other(3); other(4); other(5); other(6); other(7); other(8); } "
WORK = (
    "static int work(int *p) { STATE = 1; *p = 2; " + MANY + "return 3; }\n"
    "int e1(int *p) { return work(p); }\nint e2(int *p) { return work(p) + 5; }\nint e3(int *p) { return work(p) + 6; }\n"
    "int get(void) { return STATE; }\n"
)
RETURNS = "int entry(void) { return 2; }\n"
CALLS = "int entry(int a) { return other(a) + other(a); }\n"
PASSES = "static __attribute__((noinline)) long part(struct s *p) { return p->b + 1; }\nlong entry(struct s *p) { return part(p); }\n"
# Old header, new header, source.
OBJECTS = {
    "a type that a structure holds by another name": (
        HELD,
        HELD.replace("int v;", "int v; long w;"),
        "int entry(struct s *a) { return a->third; }\n",
    ),
    "an alignment as a size": (
        "struct a { long x; };\nextern struct a *gp;\nstruct s { int one; char pad[__alignof(*gp)]; long a2; long a3; char a4; int a5; int third; short a7; long a8; };\n",
        "struct a { long x; long y __attribute__((aligned(64))); };\nextern struct a *gp;\n"
        "struct s { int one; char pad[__alignof(*gp)]; long a2; long a3; char a4; int a5; int third; short a7; long a8; };\n",
        "int entry(struct s *a) { return a->third; }\n",
    ),
    "an array that the text alone uses": (
        OTHER + "static int list[4];\n",
        OTHER + "static int list[5];\n",
        WORK.replace("STATE", "list[0]"),
    ),
    "an address that an unused function takes": (
        OTHER + "static int state;\n",
        OTHER + "static int state;\nstatic inline int *get_state(void) { return &state; }\n",
        WORK.replace("STATE", "state"),
    ),
    "a step of a second pointer": (
        PLAIN,
        LARGER,
        "long entry(struct s **list) { struct s *end = list[1], *p = list[0]; long t = 0; while (p != end) { t += p->b; p++; } return t; }\n",
    ),
    "a second pointer's value": (
        PLAIN,
        LARGER,
        USED + "void entry(struct s *a) { struct s *o = a, *q = a + 0; take(o); show(a->b, *q); }\n",
    ),
    "a step by a type's name": (
        PLAIN,
        LARGER,
        "typedef struct s **list;\nlong entry(list q) { (*q)++; return (*q)->b; }\n",
    ),
    "a step of a typeof": (
        PLAIN,
        LARGER,
        "long entry(struct s *p) { __typeof__(p) a = p, q = p; q++; return a->b + q->b; }\n",
    ),
    "a step of a local structure's member": (
        PLAIN,
        LARGER,
        "long entry(struct s *p) { struct { struct s *m; } h; h.m = p; h.m++; return h.m->b; }\n",
    ),
    "a value behind brackets": (
        PLAIN.replace("long b", "double b"),
        PLAIN.replace("char j", "double j"),
        USED + "void entry(struct s *p) { struct s *a = p, (b); b.d = p->d; show(a->d, b); }\n",
    ),
    "a volatile variable": (OTHER, OTHER + "static const volatile int v = 5;\n", RETURNS),
    "a volatile variable by its type's name": (
        OTHER,
        OTHER + "typedef volatile int v_t;\nstatic const v_t v = 5;\n",
        RETURNS,
    ),
    "a literal with a number": (
        OTHER,
        OTHER + "static const int *const p __attribute__((unused)) = (const int[]){1,2};\n",
        "const int *const q = (const int[]){3};\n",
    ),
    "a declaration in a body": (
        OTHER + "static inline void gg(void) { }\n",
        OTHER + "static inline void gg(void) { int __attribute__((const)) other(int); }\n",
        CALLS,
    ),
    "a name in assembly in a body": (
        OTHER + "static inline void gg(void) { }\n",
        OTHER + 'static inline void gg(void) { __typeof__(int) other(int) __asm__("bar"); }\n',
        CALLS,
    ),
    "an attribute of the whole file": (
        OTHER,
        OTHER + 'extern __attribute__((optimize("O0"))) int un(int);\n',
        "double entry(double a) { return a + 2.5; }\n",
    ),
    "a function that is never left out": (
        OTHER,
        OTHER + "extern inline __attribute__((gnu_inline, noipa)) int un(int a) { return a; }\n",
        RETURNS,
    ),
    "a name in an attribute": (
        OTHER,
        OTHER + "static const int foo = 3;\n",
        'static int bar __attribute__((weakref("foo")));\nint entry(void) { return bar; }\n',
    ),
    "a name in an attribute's two texts": (
        OTHER,
        OTHER + "static const int foo = 3;\n",
        'static int bar __attribute__((weakref("fo" "o")));\nint entry(void) { return bar; }\n',
    ),
    "a name in an attribute's escapes": (
        OTHER,
        OTHER + "static const int foo = 3;\n",
        'static int bar __attribute__((weakref("f\\x6fo")));\nint entry(void) { return bar; }\n',
    ),
    "a trait by a type's name": (TRAIT, TRAIT.replace("int v;", "volatile int v;"), PASSES),
    "a restrict of a typeof": (
        POINTERS,
        POINTERS.replace("void *room[100];", "".join(f"void *room{n};" for n in range(100))),
        "int entry(struct s *q, __typeof__(q) __restrict r) { *r->one = 1; *r->other = 2; return *r->one; }\n",
    ),
    "padding that is cleared": (
        PLAIN,
        PLAIN.replace("int d;", "char d; char dd;"),
        USED + "long entry(struct s *p) { __builtin_clear_padding(p); return p->b; }\n",
    ),
    "the size of a parameter": (
        PLAIN,
        LARGER,
        "__attribute__((access(read_write, 1, 2))) unsigned long entry(struct s *p, unsigned long n) { return __builtin_dynamic_object_size(p, 0); }\n",
    ),
    "an address as a size": (
        PLAIN,
        LARGER,
        "unsigned long size = (unsigned long)&((struct s *)0)[1];\nlong entry(struct s *x) { return x->b; }\n",
    ),
    "a size in a parameter": (
        PLAIN,
        LARGER,
        "int entry(struct s *p, char (*q)[sizeof(*p)]) { q++; return (*q)[0]; }\n" + USES,
    ),
    "a volatile value that is dropped": (
        BYTES,
        MORE_BYTES,
        "void entry(volatile struct s *p) { p[0]; }\n" + USES,
    ),
    "what assembly reads": (
        BYTES,
        MORE_BYTES,
        'int entry(struct s *p) { int x; ((char *)p)[12] = 1; __asm__("movl %1,%0" : "=r"(x) : "m"(p[0])); ((char *)p)[12] = 2; return x; }\n'
        + USES,
    ),
    "words that two ends of lines part": (
        "#define unsignedlong int\n",
        "#define unsignedlong int\nunsigned\\\n\\\nlong x = 1;\n",
        RETURNS,
    ),
    "an attribute's name that is a macro": (
        "#define hot nosuch\n",
        "#define hot nosuch\n#if __has_attribute(hot)\nint y;\n#endif\n",
        RETURNS,
    ),
    "a pragma that defines macros": (
        "",
        '#pragma GCC target("avx2")\n#ifdef __AVX2__\nint yes;\n#endif\n',
        RETURNS,
    ),
}
MEMBER = "struct s { int x; };\n"
WARNED = {
    "a member of the same name": (
        MEMBER,
        MEMBER + "static int x;\n",
        "int f(struct s *p) { return p->x; }\n",
    ),
    "a variable of the same name": (
        OTHER,
        OTHER + "static int x;\n",
        "int f(int a) { int x = a; return x; }\n",
    ),
    "a pointer to a constant": (OTHER, OTHER + 'static const char *p = "x";\n', RETURNS),
    "a second one that is used": (OTHER, OTHER + "static int a __attribute__((unused)), p;\n", RETURNS),
    "what is not to be used": (
        "struct foo { int a; };\nextern void use(struct foo *p);\n",
        "struct foo { int a; } __attribute__((unavailable));\nextern void use(struct foo *p);\n",
        RETURNS,
    ),
    "blanks in a definition": ("#define S(x) #x\n", "#define S(x) #x\n#define S(x) # x\n", RETURNS),
    "a trigraph in a comment": ("/* what */\n", "/* what?\\?/\n */\n".replace("\\", ""), RETURNS),
    "a pragma of the preprocessor": (
        "",
        '#pragma GCC diagnostic warning "-Wundef"\n#if FOO\n#endif\n',
        RETURNS,
    ),
}
QUICK = (
    "a type that a structure holds by another name",
    "an array that the text alone uses",
    "a step of a second pointer",
    "a volatile variable",
)
QUICK_WARNED = ("a member of the same name", "what is not to be used")


@pytest.mark.parametrize("name", cases(OBJECTS, QUICK))
def test_an_object_is_gccs_before_and_after_the_change_and_back(bench: Bench, name: str) -> None:
    *headers, source = OBJECTS[name]
    bench.compare_code(headers, source, "-fno-strict-aliasing", "-w")


@pytest.mark.parametrize("name", cases(WARNED, QUICK_WARNED))
def test_a_warning_that_a_change_brings_is_told(bench: Bench, name: str) -> None:
    bench.compare_words_with(*WARNED[name])


@pytest.mark.parametrize(
    ("flag", "header", "more"),
    [
        ("-Werror=unused-macros", OTHER, "#define NEVER 1\n"),
        ("-Werror=long-long", OTHER, "#if 1LL\n#endif\n"),
        ("-Wunused-const-variable", "static const int x = 3;\n", ""),
    ],
)
def test_a_flag_by_another_name_is_heeded(bench: Bench, flag: str, header: str, more: str) -> None:
    bench.write(h_h=OTHER, a_c='#include "h.h"\n' + RETURNS)
    bench.compare_words("a.c", flag, complains=False)
    bench.write(h_h=header, a_c='#include "h.h"\n' + more + RETURNS)
    bench.compare_words("a.c", flag, complains=True)


def test_a_file_is_read_once_by_whatever_path(bench: Bench) -> None:
    for includes in ('#include "h.h"\n', '#include "h.h"\n#include "./h.h"\n'):
        bench.write(
            h_h="#pragma once\nstatic int once;\n", a_c=includes + "int *entry(void) { return &once; }\n"
        )
        assert bench.code("front", "-w") == bench.code("/usr/bin/gcc", "-w")


@pytest.mark.parametrize(
    ("source", "old", "new"),
    [
        (
            "int f(int a) { switch (a) { case 1: a = 2; /* fallthrough */\ncase 2: return a; } return 3; }\n",
            "/* fallthrough */",
            "",
        ),
        (
            "#define ID(x) x\n#define C(a) (a ? 2 : 3)\nint f(int a) { if (ID(C(a))) return 2; return 3; }\n",
            "C(a))",
            "(a ? 2 : 3))",
        ),
    ],
    ids=["a comment", "a macro's definition"],
)
def test_what_spared_the_source_a_warning_is_missed(bench: Bench, source: str, old: str, new: str) -> None:
    for text in (source, source.replace(old, new), source):
        bench.write(a_c=text)
        bench.compare_words("a.c", "-Wimplicit-fallthrough=3")
