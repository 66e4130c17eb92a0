# SPDX-License-Identifier: GPL-2.0-or-later
"""Changes of a header, and whether the object of MAIN must be compiled again for them."""

from __future__ import annotations

from dataclasses import dataclass

HEADER = """struct deep { long value; };
struct shape { int width; struct deep *deep; };
enum colour { RED, GREEN = 4, BLUE };
typedef unsigned int size32;
#define FACTOR 3
extern int outside(struct shape *shape);
extern int unused_one(int value);
static inline int area(struct shape *shape)
{
	return shape->width * FACTOR;
}
static inline int lonely(int value)
{
	return value + 1;
}
struct unrelated { int a; };
static const int table[] = { 1, 2, 3 };
extern int last_one(void);
"""

MAIN = """#include "h.h"
int global;
size32 entry(struct shape *shape)
{
	static int calls;
	calls++;
	return area(shape) + outside(shape) + BLUE + shape->deep->value + table[calls & 1];
}
"""


@dataclass(frozen=True, slots=True)
class Change:
    """A text of HEADER and what stands in its place. hit: whether the store answers."""

    name: str
    old: str
    new: str
    hit: bool


_LAST = "extern int last_one(void);\n"
_FIRST = "struct deep { long value; };\n"


def _put(name: str, text: str, *, hit: bool = True) -> list[Change]:
    """The same text at the end, and at the beginning."""
    return [
        Change(f"{name} at the end", _LAST, _LAST + text, hit),
        Change(f"{name} at the beginning", _FIRST, text + _FIRST, hit),
    ]


CHANGES = [
    *_put("a prototype", "extern long fresh(int a, char *b);\n"),
    *_put("an inline function", "static inline int fresh(int a)\n{\n\treturn a * 7;\n}\n"),
    *_put("a function returning a pointer to a function", "extern int (*fresh(int a))(long);\n"),
    *_put("a type of functions", "typedef int (*fresh_t)(int a, void *b);\n"),
    *_put("a struct", "struct fresh { int a; union { int b; long c; }; };\n"),
    *_put("a struct with attributes", "struct __attribute__((packed)) fresh { char a; int b; } __attribute__((aligned(8)));\n"),
    *_put("an enumeration", "enum fresh { FRESH_A, FRESH_B = sizeof(int), FRESH_C };\n"),
    *_put("a forward declaration", "struct fresh;\n"),
    *_put("a macro", "#define FRESH 12\n"),
    *_put("a comment", "/* of\n * three\n * lines */\n"),
    *_put("an array", "extern int fresh[4][8];\n"),
    *_put("a variable elsewhere", "extern int fresh, *pointer, (*function)(void);\n"),
    *_put("a static table", "static const int fresh[] = { [2] = 1, [0 ... 1] = 5 };\n"),
    *_put("typeof", "extern __typeof__(((struct unknown_but_fine *)0)) fresh;\n"),
    *_put("a statement expression", "static inline int fresh(int a)\n{\n\treturn ({ int b = a; b + 1; });\n}\n"),
    *_put("generic selection", "static inline int fresh(int a)\n{\n\treturn _Generic(a, int: 1, default: 2);\n}\n"),
    *_put("a variable in a section", 'static int fresh __attribute__((unused, section(".fresh"))) = 1;\n'),
    # What makes something by itself is always in.
    *_put("a definition", "int fresh = 4;\n", hit=False),
    *_put("a tentative definition", "int fresh;\n", hit=False),
    *_put("a function", "int fresh(void);\nint fresh(void)\n{\n\treturn 1;\n}\n", hit=False),
    *_put("a function of old", "int fresh();\nint fresh(a) int a;\n{\n\treturn a;\n}\n", hit=False),
    *_put("what is used", "static int fresh __attribute__((used)) = 1;\n", hit=False),
    *_put("a constructor", "static void __attribute__((constructor)) fresh(void)\n{\n}\n", hit=False),
    *_put("assembly", 'asm(".globl fresh");\n', hit=False),
    *_put("an assertion", '_Static_assert(sizeof(int) == 4, "four");\n', hit=False),
    *_put("a pragma", "#pragma GCC visibility push(default)\n#pragma GCC visibility pop\n", hit=False),
    *_put("a register", 'register unsigned long fresh asm("r15");\n', hit=False),
    *_put("a weak function", "extern int fresh(void) __attribute__((weak));\n", hit=False),
    *_put("a library function", "extern void *memcpy(void *, const void *, unsigned long);\n", hit=False),
    *_put("a static variable of a function", "static inline int fresh(void)\n{\n\tstatic int seen;\n\treturn seen++;\n}\n", hit=False),
    *_put("a declaration within a body", "struct shape;\nstatic inline int fresh(void)\n{\n\textern int outside(struct shape *) __attribute__((cold));\n\treturn 1;\n}\n", hit=False),
    *_put("a function declared within a body", "struct shape;\nstatic inline int fresh(void)\n{\n\tint outside(struct shape *) __attribute__((cold));\n\treturn 1;\n}\n", hit=False),
    *_put("a function that a body declares by its type's name", "struct shape;\ntypedef int fresh_t(struct shape *);\nstatic inline int fresh(void)\n{\n\tfresh_t outside __attribute__((cold));\n\treturn 1;\n}\n", hit=False),
    *_put("a function that a body declares among others", "struct shape;\ntypedef int fresh_t(struct shape *);\nstatic inline int fresh(void)\n{\n\t__attribute__((cold)) fresh_t *other, (outside);\n\treturn 1;\n}\n", hit=False),
    *_put("a function that a body declares by typeof", "struct shape;\nstatic inline int fresh(void)\n{\n\t__typeof__(int(struct shape *)) outside __attribute__((cold));\n\treturn 1;\n}\n", hit=False),
    *_put("an attribute in brackets", "static const int fresh [[gnu::used]] = 1;\n", hit=False),
    *_put("another name in assembly", "extern int fresh(int) asm(\"other\");\n", hit=False),
    *_put("a local variable with an attribute", "static inline int fresh(int a)\n{\n\tint b __attribute__((unused)) = a;\n\treturn a;\n}\n"),
    *_put("a function's name", "static inline const char *fresh(void)\n{\n\treturn __func__;\n}\n", hit=False),
    # What the source reaches, at once or by way of others.
    Change("a field", "int width;", "int width; int height;", False),
    Change("a field further on", "long value;", "char first; long value;", False),
    Change("a macro that is used", "FACTOR 3", "FACTOR 5", False),
    Change("a body that is used", "shape->width * FACTOR", "shape->width * FACTOR + 1", False),
    Change("an enumerator", "GREEN = 4", "GREEN = 6", False),
    Change("a type name", "unsigned int size32", "unsigned short size32", False),
    Change("an attribute", "outside(struct shape *shape);", "outside(struct shape *shape) __attribute__((cold));", False),
    Change("another declaration of what is used", _LAST, "extern int outside(struct shape *) __attribute__((const));\n", False),
    Change("a table that is used", "{ 1, 2, 3 }", "{ 1, 9, 3 }", False),
    Change("a line within a body that is used", "\treturn shape->width", "\n\treturn shape->width", False),
    Change("a local variable's name", _LAST, "extern int calls;\n", False),
    Change("operators that only look alike", "* FACTOR", "- - FACTOR", False),
    # What it does not.
    Change("a body that is not used", "value + 1", "value + 2", True),
    Change("a prototype gone", "extern int unused_one(int value);\n", "", True),
    Change("a function gone", "static inline int lonely(int value)\n{\n\treturn value + 1;\n}\n", "", True),
    Change("a struct that is not used", "{ int a; }", "{ int a, b; }", True),
    Change("an order that does not matter", "extern int unused_one(int value);\n", "extern int last_one(void);\nextern int unused_one(int value);\n", True),
    Change("blanks", "shape->width * FACTOR", "shape->width   *   FACTOR", True),
]  # fmt: skip

# Each stands at the end of HEADER, unused; a clean compile fails, or warns.
MISTAKES = {
    "an unknown variable": "static inline int fresh(void)\n{\n\treturn nowhere;\n}\n",
    "an unknown field": "static inline int fresh(struct shape *s)\n{\n\treturn s->nowhere;\n}\n",
    "an unknown type": "extern nowhere_t fresh(void);\n",
    "another type": "extern long outside(struct shape *shape);\n",
    "a struct twice": "struct unrelated { int b; };\n",
    "a variable that is not used": "static inline int fresh(void)\n{\n\tint idle;\n\treturn 1;\n}\n",
    "no return": "static inline int fresh(void)\n{\n}\n",
    "a struct within parameters": "extern int fresh(struct nowhere *a);\n",
    "an incomplete field": "struct fresh { struct nowhere a; };\n",
    "an enumerator twice": "enum fresh { RED };\n",
    "a syntax error": "extern int fresh(;\n",
    "an assertion that fails": '_Static_assert(sizeof(struct deep) == 1, "one");\n',
    "a function that is not declared": "static inline int fresh(void)\n{\n\treturn nowhere();\n}\n",
    "a negative array": "struct fresh { char a[(int)sizeof(struct deep) - 9]; };\n",
    "an unused static function": "static int fresh(void)\n{\n\treturn 1;\n}\n",
}

# Gone from HEADER, where something that is not used needs it.
LOST = {
    "a field": ("int a; };", "};", "static inline int needs(struct unrelated *u)\n{\n\treturn u->a;\n}\n"),
    "a function": ("extern int unused_one(int value);\n", "", "static inline int needs(void)\n{\n\treturn unused_one(1);\n}\n"),
    "a type": ("struct unrelated { int a; };\n", "", "struct needs { struct unrelated u; };\n"),
    "an order": ("extern int last_one(void);\n", "", "static inline int needs(void)\n{\n\treturn last_one();\n}\nextern int last_one(void);\n"),
}  # fmt: skip

# What stands before the header "h.h", which is the same in all: once so that the header is free of mistakes, and once not.
CONTEXTS = {
    "a type": (
        "typedef int good_t;\n",
        "typedef struct { int a; } good_t;\n",
        "static inline int late(good_t a)\n{\n\treturn a + 1;\n}\n",
    ),
    "a type that is gone": ("typedef int good_t;\n", "", "extern good_t late(void);\n"),
    "a field": (
        "struct part { int a; };\n",
        "struct part { int b; };\n",
        "static inline int late(struct part *p)\n{\n\treturn p->a;\n}\n",
    ),
    "a struct that is not complete": (
        "struct part { int a; };\n",
        "struct part;\n",
        "static inline int late(void)\n{\n\treturn sizeof(struct part);\n}\n",
    ),
    "a union of the name": (
        "struct part { int a; };\n",
        "union part { int a; };\n",
        "extern int late(struct part *p);\n",
    ),
    "a field further on": (
        "struct deep { int a; };\nstruct part { struct deep d; };\n",
        "struct deep { int b; };\nstruct part { struct deep d; };\n",
        "static inline int late(struct part *p)\n{\n\treturn p->d.a;\n}\n",
    ),
    "another declaration": (
        "extern int early(int);\n",
        "extern long early(int);\n",
        "extern int early(int);\n",
    ),
    "a parameter more": (
        "extern int early(int);\n",
        "extern int early(int, int);\n",
        "static inline int late(void)\n{\n\treturn early(1);\n}\n",
    ),
    "a number": ("enum { SIZE = 4 };\n", "enum { SIZE = -4 };\n", "struct late { char a[SIZE]; };\n"),
    "a pragma": (
        '#pragma GCC diagnostic ignored "-Wunused-variable"\n',
        "",
        "static inline int late(void)\n{\n\tint idle;\n\treturn 1;\n}\n",
    ),
    "a pragma that is popped": (
        '#pragma GCC diagnostic push\n#pragma GCC diagnostic ignored "-Wunused-variable"\n',
        '#pragma GCC diagnostic push\n#pragma GCC diagnostic ignored "-Wunused-variable"\n#pragma GCC diagnostic pop\n',
        "static inline int late(void)\n{\n\tint idle;\n\treturn 1;\n}\n",
    ),
    "a declaration in a body": (
        "static inline int early(void)\n{\n\textern int wide(void);\n\treturn wide();\n}\n",
        "static inline int early(void)\n{\n\textern long wide(void);\n\treturn wide();\n}\n",
        "extern int wide(void);\n",
    ),
    "a variable of the name": ("extern int other;\n", "extern int late;\n", "extern int late(void);\n"),
    "a macro": (
        "#define AND(a) && (a)\n",
        "#define AND(a) && (a) +\n",
        "static inline int late(int a)\n{\n\treturn a AND(a);\n}\n",
    ),
}

# What a header promises, and what the source that includes it keeps of that.
PROMISES = {
    "an inline function": (
        "static inline int late(void);\n",
        "static inline int late(void)\n{\n\treturn 1;\n}\n",
    ),
    "a structure": ("static struct part late __attribute__((unused));\n", "struct part { int a; };\n"),
}

# Numbers of lines where macros are given over several of them.
SPREAD = {
    "an argument": "int lines[] = { ID(\n__LINE__\n,\nLINE) };\n",
    "an argument within": "int lines[] = { ID(1,\nID(2,\n__LINE__)\n) };\n",
    "a macro's own line": "int lines[] = { HERE(1,\n2), HERE(\nHERE(3,\n4),\n5) };\n",
    "a name and its bracket": "int lines[] = { ID\n(LINE,\nLINE) };\n",
    "a pasted name": "int NAMED(line,\n__LINE__);\nint NAMED(other_,\nLINE\n) = LINE;\n",
    "a string": "const char *text = TEXT(\nLINE\n__LINE__);\n",
    "a pasted line": "int lines[] = { ID(1,\nPASTE(LI, NE)) };\n",
    "a comment between": "int lines[] = { ID( /* )\n */ LINE, // )\n LINE) };\n",
    "a string between": 'int lines[] = { sizeof ID(")",\n LINE) };\n',
    "branches": "int lines[] = { ID((1 +\n#ifdef NO\n1)\n#else\n2)\n#endif\n, LINE) };\n",
    "a line of its own": "#line 40\nint lines[] = { ID(1,\n#line 90\nLINE) };\n",
    "another file's line": '#line 40 "h.h"\nint lines[] = { ID(1,\nLINE) };\n',
    "an escaped line's end": "int lines[] = { ID(1, \\\nLINE), \\\nLINE };\n",
}
SPREADING = """#define ID(...) __VA_ARGS__
#define LINE __LINE__
#define HERE(a, b) a, b, __LINE__
#define PASTE(a, b) a ## b
#define NAMED(a, b) PASTE(a, b)
#define STRING(...) #__VA_ARGS__
#define TEXT(...) STRING(__VA_ARGS__)
"""
