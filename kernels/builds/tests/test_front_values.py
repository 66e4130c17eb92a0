# SPDX-License-Identifier: GPL-2.0-or-later
"""A structure that a call is given, where no name has its type, is needed whole."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernels.builds.tests.front_runs import Bench
from kernels.tests.cases import cases

pytestmark = pytest.mark.process
LARGE = """struct large { char one; long two; short three; long four; int five, six; struct large *next; long seven; char text[20]; };
struct holder { struct large *list[2]; struct large *one; struct large *(*get)(struct large *); void (*show)(int, ...); };
extern struct large *get_large(void);
extern void take(void *what);
extern void show(int, ...);
extern void old();
"""
ENTRY = "void entry(struct large *a, struct large *b, int x, struct holder *h, struct large **p, void *v)"
# READ_ONCE, as the kernel has it.
ONCE = "({ do { x++; } while (0); (*(const volatile __typeof__(_Generic((P), char: (char)0, default: (P))) *)&(P)); })"
# What is given to show().
GIVEN = {
    "what a pointer points to": "*a",
    "an element": "a[0]",
    "an element that braces give": "({ a[0]; })",
    "an element that braces give after something else": "({ take(a); (a[0]); })",
    "an element that braces in braces give": "({ ({ a[0]; }); })",
    "a copied element": "a[0] = b[0]",
    "an element by its number": "0[a]",
    "an element after a comma": "(take(a), a[0])",
    "a member's element": "({ a->next[0]; })",
    "a call's element": "({ get_large()[0]; })",
    "one of two that braces give": "({ x ? a[0] : a[1]; })",
    "one of two by the compiler's choice": "__builtin_choose_expr(1, a[0], 1)",
    "one by its type": "_Generic(x, int: a[0], default: 1)",
    "what a member of braces points to": "*(({ a; })->next)",
    "what a pointer of its type points to": "*(__typeof__(*a) *)v",
    "what a copied pointer points to": "(*(__typeof__(a))v)",
    "a member in brackets": "*(a->next)",
    "a pointer that is read once": f"*{ONCE.replace('P', 'a->next')}",
    "an extended element": "__extension__ a[0]",
    "an element behind a block": "({ if (x) { take(a); } (&*a)[0]; })",
    "what a variable in braces points to": "({ __typeof__(*(a)) *c = a; c; })[0]",
}
QUICK = (
    "an element that braces give",
    "an element by its number",
    "a member in brackets",
    "a pointer that is read once",
)


@pytest.fixture
def bench(tmp_path: Path, program: Path) -> Bench:
    """A folder with the header, whose store is empty."""
    made = Bench(tmp_path / "bench", program)
    made.write(h_h=LARGE)
    return made


def assert_whole(bench: Bench, statement: str) -> None:
    """Assert that after a field more the object of a function with this statement is a clean compile's."""
    flags = ("-fno-strict-aliasing", "-w")
    bench.write(
        a_c=f'#include "h.h"\n{ENTRY} {{ struct holder f = *h; a->two = 3; {statement} }}\n', h_h=LARGE
    )
    bench.compile("front", *flags)
    bench.events()
    bench.write(h_h=LARGE.replace("char text", "long fresh; char text"))
    assert bench.code("front", *flags) == bench.code("/usr/bin/gcc", *flags), statement


@pytest.mark.parametrize("name", cases(GIVEN, QUICK))
def test_a_structure_behind_dots_has_its_new_size(bench: Bench, name: str) -> None:
    assert_whole(bench, f"show(1, {GIVEN[name]});")


class Expressions:
    """Draws statements in which a structure is given without its type."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.names = (f"q{number}" for number in itertools.count())

    def pointer(self, depth: int) -> str:
        """Return an expression that points to the structure."""
        plain = [
            "a",
            "b",
            "a->next",
            "get_large()",
            "(a)",
            "f.list[0]",
            "h->list[0]",
            "(*h).one",
            "(*&a)",
            "p[0]",
            "*p",
            "(&a[0])",
        ]
        plain += [
            "((struct large *)v)",
            "x[p]",
            "x[h->list]",
            "(*p++)",
            "(--p)[0]",
            "(b = a)",
            "(a ?: b)",
            "(*(struct large **)v)",
        ]
        plain += ["h->get(a)", "(*h->get)(b)", "((struct holder){ .one = b }).one", "({ while (0) {} a; })"]
        if not depth or self.chance.random() < 0.4:
            return self.chance.choice(plain)
        inner, other, name = self.pointer(depth - 1), self.pointer(depth - 1), next(self.names)
        deeper = [
            f"({inner})",
            f"(x ? {inner} : {other})",
            f"({{ {inner}; }})",
            f"({inner})->next",
            f"((__typeof__(a)){inner})",
            f"((__typeof__(*a) *){inner})",
            f"(x, {inner})",
            f"({{ __typeof__(*({inner})) *{name} = {other}; {name}; }})",
            f"({{ __auto_type {name} = {inner}; {name}; }})",
            f"__builtin_choose_expr(0, x, {inner})",
            ONCE.replace("P", self.chance.choice(["h->one", "a->next", "p[0]", "*p", "h->list[1]"])),
        ]
        return self.chance.choice(deeper)

    def value(self, depth: int) -> str:
        """Return an expression that is the structure."""
        plain = [
            f"*({self.pointer(depth)})",
            f"({self.pointer(depth)})[0]",
            f"0[{self.pointer(depth)}]",
            "*a",
            "b[0]",
            "a->next[0]",
        ]
        if not depth or self.chance.random() < 0.4:
            return self.chance.choice(plain)
        inner, other = self.value(depth - 1), self.value(depth - 1)
        before = " ".join(self.statements())
        deeper = [
            f"({{ {before} {inner}; }})",
            f"({inner})",
            f"(x ? {inner} : {other})",
            f"(take(b), {inner})",
            f"__builtin_choose_expr(1, {inner}, 1)",
            f"_Generic(x, int: {inner}, default: 1)",
            f"(*p[0] = {inner})",
            f"(a[0] = {inner})",
            f"__extension__ ({inner})",
        ]
        return self.chance.choice(deeper)

    def statements(self) -> Iterator[str]:
        """Yield up to two statements."""
        forms = [
            "x++;",
            "if (x) take(a);",
            "{ x = 2; }",
            "if (x) { take(b); } else { x++; }",
            "do { x--; } while (x > 9);",
            ";",
        ]
        forms += [
            "for (; x < 9; x++) ;",
            "switch (x) { case 1: x = 3; }",
            "__typeof__(a) y = b; take(y);",
            f"{next(self.names)}:",
        ]
        yield from self.chance.sample(forms, self.chance.randrange(3))

    def call(self) -> str:
        """Return a statement that gives the structure to a function of which no prototype has its type."""
        given = self.value(3)
        forms = [
            "show(1, {});",
            "h->show(1, {});",
            "(*h->show)(1, {});",
            "old({});",
            "(x ? show : h->show)(1, {});",
        ]
        forms += ["x = ({{ show(1, 2, {}); 3; }}); take(&x);", "show(2, ({{ show(1, {}); 1; }}));"]
        return self.chance.choice(forms).format(given)


@pytest.mark.thorough
@pytest.mark.parametrize("number", range(60))
def test_a_structure_is_seen_in_whatever_gives_it(bench: Bench, number: int) -> None:
    assert_whole(bench, Expressions(random.Random(f"values {number}")).call())
