# SPDX-License-Identifier: GPL-2.0-or-later
"""Static functions and variables of which no text tells that they are used: the compiler's silence about what a source reaches shows it."""

from __future__ import annotations

import pytest

from kernels.builds.tests.front_runs import FLAGS, Bench

pytestmark = pytest.mark.process
# What names "given" and "list" is left out.
HEADER = """struct driver { int *list; int given, count; };
extern int call(int a, int (*given)(int), int b);
extern int take(struct driver *driver);
static inline int more(struct driver *driver) { int given = 2; return driver->list[given]; }
"""
SOURCES = {
    "an argument between others": "static int given(int a) { return a; }\nint entry(void) { return call(1, given, 2); }\n",
    "an argument in parentheses": "static int given(int a) { return a; }\nint entry(void) { return call(1, (given), 2); }\n",
    "a size": "static int list[3];\nint entry(void) { return sizeof(list) + 2; }\n",
    "a size in a value": "static int list[3];\nstruct driver driver = { list, 1, sizeof(list) / sizeof((list)[0]) };\n",
}


def assert_is_answered(bench: Bench, source: str) -> None:
    """Assert that a source is answered after a change that it does not need, where another file has had the header compiled."""
    bench.write(h_h=HEADER, a_c='#include "h.h"\nint other;\n')
    bench.compile()
    bench.write(a_c=f'#include "h.h"\n{source}')
    bench.compile()
    bench.events()
    bench.write(h_h=HEADER + "extern int fresh(int a);\n")
    assert bench.code("front") == bench.code("/usr/bin/gcc")
    assert bench.events()[-1] == "hit"


MEMBERS = """struct list { int *list; int given, list_of[3], (*call)(int given); };
struct given; extern struct given *get(struct list *of);
static inline int count(struct list *of) { return *of->list + of->given; }
extern int call(int a, int (*)(int), int b);
struct driver { int *list; int count, size; };
"""


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_the_first_file_that_reads_a_header_is_answered_where_the_header_has_members_and_tags_of_its_names(
    name: str, bench: Bench
) -> None:
    bench.write(h_h=MEMBERS, a_c=f'#include "h.h"\n{SOURCES[name]}')
    bench.compile()
    bench.events()
    bench.write(h_h=MEMBERS + "extern int fresh(int a);\n")
    assert bench.code("front") == bench.code("/usr/bin/gcc")
    assert bench.events()[-1] == "hit"


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_a_file_whose_own_names_a_header_has_too_is_answered(name: str, bench: Bench) -> None:
    assert_is_answered(bench, SOURCES[name])


PART = "static int later(int a);\nstatic int list[3] = { 1, 2, 3 };\nint part(void) { return call(1, later, sizeof(list)); }\nstatic int later(int a) { return a; }\n"


def test_a_file_that_includes_functions_of_its_own_is_answered(bench: Bench) -> None:
    bench.write(part_h=PART)
    assert_is_answered(bench, '#include "part.h"\n')


# Headers in which something left out uses f(), and then only seems to; a source without any use of its own.
DECLARED = "static int f(int a);\n"
FALSE_FRIENDS = {
    "a parameter": "static inline int g(int (f)) { return 1; }\n",
    "a local variable": "static inline int g(void) { int a = 1, f = 2; return a + f; }\n",
    "a member": "struct has { int f; };\nstatic inline int g(struct has *a) { return a->f; }\n",
    "nothing": "static inline int g(void) { return 1; }\n",
}
UNUSED = "static int f(int a) { return a + 2; }\nint entry(void) { return 3; }\n"


@pytest.mark.parametrize("known", [False, True], ids=["first", "after another file"])
@pytest.mark.parametrize("name", sorted(FALSE_FRIENDS))
def test_a_function_that_only_a_header_used_is_said_to_be_unused_when_it_does_no_more(
    name: str, known: bool, bench: Bench
) -> None:
    used = DECLARED + "static inline int g(void) { return f(1); }\n"
    if known:
        for header in (used, DECLARED + FALSE_FRIENDS[name]):
            bench.write(h_h=header, a_c=f'#include "h.h"\n{UNUSED}int keep(void) {{ return f(2); }}\n')
            bench.compile()
    bench.compare_words_with(used, DECLARED + FALSE_FRIENDS[name], UNUSED)
    # And back.
    bench.write(h_h=used)
    bench.compare_words("a.c", complains=False)


@pytest.mark.parametrize("name", sorted(FALSE_FRIENDS))
def test_what_one_source_uses_says_nothing_of_another(name: str, bench: Bench) -> None:
    header = DECLARED + FALSE_FRIENDS[name]
    bench.write(h_h=header, a_c=f'#include "h.h"\n{UNUSED}int keep(void) {{ return f(2); }}\n')
    for _ in range(2):
        bench.compile()
    bench.write(a_c=f'#include "h.h"\n{UNUSED}')
    for _ in range(2):
        bench.compare_words("a.c", complains=True)
    assert bench.run("front", *FLAGS, "-c", "-o", "out.o", "a.c").stderr
