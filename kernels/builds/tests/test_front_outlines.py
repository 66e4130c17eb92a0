# SPDX-License-Identifier: GPL-2.0-or-later
"""A source that needs some members of a structure does not depend on the others, nor on the size that it never asks for."""

from __future__ import annotations

import hashlib
import struct
import zlib
from pathlib import Path

import pytest

from kernels.builds.tests.front_runs import Bench
from kernels.tests.cases import cases

pytestmark = pytest.mark.process
LARGE = """struct inner { int own; long other_own; };
struct large {
	char first;
	long second;
	struct inner inner;
	union { int either; long other; };
	long apart;
	struct { int hidden; struct { char deep; } named; };
	long away;
	int few:3; unsigned more:5;
	short after;
	struct large *next;
	void (*call)(int a, char b);
	int one, two, *three;
	char text[20];
	unsigned char last[];
} __attribute__((aligned(16)));
extern struct large *get_large(void);
extern void take(void *what);
void *memcpy(void *to, const void *from, unsigned long size);
"""
# Changes of the structure, the first behind all that RESIZED names.
CHANGES = {
    "a field behind most": ("char text", "long fresh[3]; char text"),
    "a field before all": ("char first;", "long fresh; char first;"),
    "a field where there was room": ("char first;", "char first; char fresh;"),
    "another type of the same size": ("short after;", "unsigned short after;"),
    "a smaller type": ("long second;", "int second;"),
    "another structure within": ("int own; long", "long zero; int own; long"),
    "other bits": ("int few:3;", "int few:9;"),
    "another size of a list": ("text[20]", "text[90]"),
    "a stricter place": ("aligned(16)", "aligned(64)"),
    "no gaps": ("__attribute__((aligned(16)))", "__attribute__((packed))"),
}
# What the compiler reads alike with a field more behind it.
RESIZED = {
    "a member": "long entry(struct large *a) { return a->second; }",
    "a member of a member": "long entry(struct large *a) { return a->inner.other_own; }",
    "a member of a union without a name": "long entry(struct large *a) { return a->other; }",
    "a member of a structure without a name": "int entry(struct large *a) { return a->hidden + a->named.deep; }",
    "what is behind bits": "int entry(struct large *a) { return a->after; }",
    "the next": "long entry(struct large *a) { return a->next->next->second; }",
    "a function": "void entry(struct large *a) { a->call(a->first, 2); }",
    "one of several": "int entry(struct large *a) { return a->two + *a->three; }",
    "what a function returns": "void entry(void) { get_large()->second = 1; }",
    "a variable of a pointer's type": "extern __typeof__(struct large *) kept; long entry(void) { __typeof__(const struct large *) a = kept; return a->second; }",
    "a place": "long entry(struct large *a) { return __builtin_offsetof(__typeof__(*a), after) + a->second; }",
    "a member that is read once": (
        'long entry(struct large *a) { do { extern void fail(void) __attribute__((error("no"))); if (sizeof(a->second) > 8) fail(); } while (0);'
        " return *(const volatile __typeof__(a->second) *)&a->second; }"
    ),
    "a size that decides alike": "long entry(struct large *a) { return sizeof(*a) > 8 ? a->second : 1; }",
    "a value of a member's type": (
        "long entry(void) { __typeof__(&get_large()->second) at = &get_large()->second; __typeof__(*((at))) b = *at;"
        " __typeof__(*(&get_large()->away)) c = b; return c; }"
    ),
    "a variable of a member's own type": "void entry(struct large *a) { __typeof__(*(&a->inner)) b = a->inner; take(&b); }",
    "a member of another structure that is called for": (
        "struct own { char text; }; struct own *get_own(int a); long entry(struct large *b) { return get_own(1)->text + b->second; }"
    ),
    "a member of another structure in a list": (
        "struct own { char text; }; extern struct own *list[4]; long entry(struct large *b) { return list[b->second]->text; }"
    ),
}
# What depends on the size, or may.
SIZED = {
    "the size": "long entry(struct large *a) { return sizeof(*a) + a->second; }",
    "the size of a variable outside": (
        "extern struct large *kept; unsigned long size = sizeof(*kept); long entry(struct large *a) { return a->second; }"
    ),
    "the one behind": "long entry(struct large *a) { return a[1].second; }",
    "any": "long entry(struct large *a, int at) { return a[at].second; }",
    "a step": "struct large *entry(struct large *a) { a->second = 1; return a + 1; }",
    "a distance": "long entry(struct large *a, struct large *b) { return a - b + a->second; }",
    "a loop": "void entry(struct large *a, struct large *b) { for (; a < b; a++) a->second = 0; }",
    "a copy": "void entry(struct large *a, struct large *b) { *a = *b; a->second = 1; }",
    "a copy of bytes": "void entry(struct large *a, void *b) { memcpy(a, b, 64); a->second = 1; }",
    "a variable": "void entry(struct large *a) { __typeof__(*a) b; b.second = a->second; take(&b); }",
    "a second variable": "void entry(void) { struct large *a = get_large(), b; b.second = a->second; take(&b); }",
    "a variable by its own type": "void entry(struct large *a) { __auto_type b = *a; b.second = 1; take(&b); }",
    "a variable of a copied type": (
        "void entry(struct large *a) { __typeof__(a) b = a; __typeof__(*b) c; c.second = b->second; take(&c); }"
    ),
    "a value without a name": "void entry(struct large *a) { take(&(__typeof__(*a)){ .second = a->second }); }",
    "a value of an element's type": "void entry(struct large *a) { take(&(__typeof__(a[0])){ .second = a->second }); }",
    "a variable of an element's type": "void entry(struct large *a) { __typeof__(a[0]) b; b.second = a->second; take(&b); }",
    "a variable of a member's element's type": "void entry(struct large *a) { __typeof__((a->next[0])) b; b.second = a->second; take(&b); }",
    "a variable copied from an element": "void entry(struct large *a) { __auto_type b = a[0]; b.second = 1; take(&b); }",
    "an element passed on": "void show(int, ...); void entry(struct large *a) { show(a->second, a[0]); }",
    "all of it passed on": "void show(int, ...); void entry(struct large *a) { show(a->second, *a); }",
    "an argument of its type": (
        "void entry(int b, ...) { struct large *a = get_large(); __builtin_va_list list; __builtin_va_start(list, b);"
        " take((void *)(a->second + __builtin_va_arg(list, __typeof__(*a)).second)); }"
    ),
    "an argument of an element's type": (
        "void entry(int b, ...) { struct large *a = get_large(); __builtin_va_list list; __builtin_va_start(list, b);"
        " take((void *)(a->second + __builtin_va_arg(list, __typeof__(a[0])).second)); }"
    ),
    "a variable of what is chosen": "void entry(struct large *a) { __typeof__(({ *a; })) b; b.second = a->second; take(&b); }",
    "a variable after a pointer": "void entry(struct large *a) { __typeof__(*a) *c = a, b; b.second = c->second; take(&b); }",
    "one of two passed on": "void show(int, ...); void entry(struct large *a, int b) { show(a->second, b ? a[0] : a[1]); }",
    "an element of a member passed on": "void show(int, ...); void entry(struct large *a) { show(a->second, (a->next[0])); }",
    "steps back": "struct large *entry(struct large **a) { --*a; (*a)->second = 1; return (*a)--; }",
    "a step of a member": "void entry(struct large *a) { a->next->second = 1; a->next++; }",
    "a step of what is called for": "long entry(void) { return ++get_large()->next->second + (++get_large()->next)->second; }",
    "a step in a list": "void entry(struct large **a, int at) { a[at]->second = 1; a[at]++; ++a[0]; }",
    "one of two": "long entry(struct large *a, struct large *b, int c) { return (c ? *a : *b).second; }",
    "a static variable": "unsigned long *entry(struct large *a) { static unsigned long b = sizeof(*a); b += a->second; return &b; }",
    "a type within": "void entry(struct large *a) { struct { char b[sizeof(*a)]; int c; } d; d.c = a->second; take(&d.c); take(&d); }",
    "a case": "int entry(struct large *a, int b) { switch (b) { case sizeof(*a): return 1; } return a->second; }",
    "a list of its size": "void entry(struct large *a) { char list[sizeof(*a)]; list[a->second] = 1; take(list); }",
    "a place for its size": (
        "void entry(struct large *a) { __attribute__((aligned(sizeof(*a) & -sizeof(*a)))) char b; b = a->second; take(&b); }"
    ),
    "bits": "int entry(struct large *a) { return a->more; }",
    "the last": "int entry(struct large *a, int at) { return a->last[at] + a->text[at]; }",
    "room behind a list": "unsigned long entry(struct large *a) { return __builtin_object_size(a->text, 1) + a->text[0]; }",
    "a variable of the next one's type": "void entry(struct large *a) { __typeof__(*a->next) b; b.second = a->second; take(&b); }",
    "a variable behind a member's place": (
        "void entry(struct large *a) { __typeof__(&a->next) at = &a->next; __typeof__(**at) b; b.second = 1; take(&b); }"
    ),
    "a variable behind a comma": "void entry(struct large *a) { __typeof__(*(&a->second, a)) b; b.second = 1; take(&b); }",
    "a variable behind a sum": "void entry(struct large *a) { __typeof__(*(a + a->second)) b; b.second = 1; take(&b); }",
    "a variable that a member chooses": (
        "void entry(struct large *a) { __typeof__(*(a->second ? get_large() : a->next)) b; b.second = 1; take(&b); }"
    ),
    "a variable behind a cast": (
        "typedef struct large *large_t; void entry(struct large *a) { __typeof__(*(large_t)a->away) b; b.second = 1; take(&b); }"
    ),
    "a variable behind a cast of a member": (
        "void *entry(struct large *a) { __auto_type p = ((struct large *)(a)->away); p->second = 1; p++; return p; }"
    ),
    "a variable behind a cast of a member of what is called for": (
        "void *entry(struct large *a) { __typeof__((struct large *)(get_large)()->away) p = a; p->second = 1; p++; return p; }"
    ),
    "a variable behind an index of a list": (
        "struct own { int at; struct large *all; }; void *entry(struct own *a)"
        " { __typeof__(a->at[a->all]) *p = a->all; p->second = 1; p++; return p; }"
    ),
    "a variable of a list's element's type": (
        "struct own { struct large *all[3]; }; void entry(struct own *a) { __typeof__(*a->all[1]) b; b.second = 1; take(&b); }"
    ),
    "all of it": "struct large entry; long other(struct large *a) { return a->second; }",
}
SOURCES = RESIZED | SIZED
QUICK = (
    "a member",
    "a member of a structure without a name",
    "a function",
    "what a function returns",
    "a place",
    "a size that decides alike",
    "the size",
    "any",
    "a copy",
    "a variable by its own type",
    "a step in a list",
    "one of two",
    "a case",
    "bits",
    "room behind a list",
)


@pytest.fixture
def bench(tmp_path: Path, program: Path) -> Bench:
    """A folder with the header, whose store is empty."""
    made = Bench(tmp_path / "bench", program)
    made.write(h_h=LARGE)
    return made


@pytest.mark.parametrize("name", cases(SOURCES, QUICK))
def test_a_changed_structure_makes_the_objects_of_a_clean_compile(bench: Bench, name: str) -> None:
    flags, source = ("-fno-strict-aliasing", "-w"), SOURCES[name]
    bench.write(a_c=f'#include "h.h"\n{source}\n')
    bench.compile("front", *flags)
    bench.events()
    for what, (old, new) in CHANGES.items():
        assert LARGE.count(old) == 1
        bench.write(h_h=LARGE.replace(old, new))
        assert bench.code("front", *flags) == bench.code("/usr/bin/gcc", *flags), what
        if what == next(iter(CHANGES)):
            assert ("resized" in bench.events()) == (name in RESIZED)


def test_two_structures_are_resized_together_and_the_answer_is_there_at_once_from_then_on(
    bench: Bench,
) -> None:
    other = LARGE.replace("large", "other").replace("struct inner { int own; long other_own; };\n", "")
    both = LARGE + other.replace("extern void take(void *what);\n", "")
    flag = "-fno-strict-aliasing"
    bench.write(
        h_h=both,
        a_c='#include "h.h"\nlong entry(struct large *a, struct other *b) { return a->second + b->second; }\n',
    )
    bench.compile("front", flag)
    bench.events()
    bench.write(h_h=both.replace("char text", "long fresh; char text"))
    assert bench.code("front", flag) == bench.code("/usr/bin/gcc", flag)
    assert [event for event in bench.events() if event not in ("layouts", "examples")] == [
        "resized",
        "checked",
        "hit",
    ]
    bench.compile("front", flag)
    assert bench.events() == ["hit"]


def kept_sizes(bench: Bench) -> Path:
    """Return the file of the store that has nothing but sizes."""
    found = [
        path
        for path in bench.store.glob("??/*.k")
        if zlib.decompress(path.read_bytes()[40:]).replace(b" ", b"").isdigit()
    ]
    (only,) = found
    return only


@pytest.mark.parametrize(
    "said", [b"8 ", b"1 2 3 ", b"", b"-1 ", b"99999999999999999999999 ", b"../../x.o 8 "]
)
def test_sizes_in_the_store_that_are_not_those_of_then_lead_to_no_object(bench: Bench, said: bytes) -> None:
    flag = "-fno-strict-aliasing"
    bench.write(a_c='#include "h.h"\nlong entry(struct large *a) { return a->second; }\n')
    bench.compile("front", flag)
    bench.events()
    rest = struct.pack("<Q", len(said)) + zlib.compress(said)
    kept_sizes(bench).write_bytes(hashlib.blake2b(rest, digest_size=32).digest() + rest)
    old, new = next(iter(CHANGES.values()))
    bench.write(h_h=LARGE.replace(old, new))
    assert bench.code("front", flag) == bench.code("/usr/bin/gcc", flag)
    assert {"miss", "resized"} & {*bench.events()} == {"miss"}


def test_a_structure_is_entire_where_pointers_to_different_types_may_not_meet(bench: Bench) -> None:
    bench.write(a_c='#include "h.h"\nlong entry(struct large *a) { return a->second; }\n')
    bench.compile("front", "-fstrict-aliasing")
    bench.events()
    bench.write(h_h=LARGE.replace("char text", "long fresh; char text"))
    assert bench.code("front", "-fstrict-aliasing") == bench.code("/usr/bin/gcc", "-fstrict-aliasing")
    assert "miss" in bench.events()
