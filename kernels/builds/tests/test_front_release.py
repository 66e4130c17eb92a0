# SPDX-License-Identifier: GPL-2.0-or-later
"""The compiler front answers files that name the kernel's release, which is another for each kernel."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernels.builds.request import local_version
from kernels.builds.tests.front_runs import Bench

pytestmark = pytest.mark.process

KEYS = ("35f6d5385aff", "7bab95ddba88", "0000000000a7")
PLACEHOLDER = "6.1.0-k000000000000zq"
# What has the release as a text.
TEXTS = {
    "an array": "const char banner[] = UTS_RELEASE;",
    "a longer text": 'const char banner[] = "Linux version " UTS_RELEASE " (kperflab)";',
    "a pointer": "void say(const char *, ...); void entry(void) { say(UTS_RELEASE); }",
    "a member": "struct { int a; char release[65]; } names = { 4, UTS_RELEASE };",
    "its size": "int entry(void) { return sizeof(UTS_RELEASE); }",
    "its length": "int entry(void) { return __builtin_strlen(UTS_RELEASE); }",
}
# Where its characters are more than that, or where others look the same.
BOUND = {
    "a character": "int entry(void) { return UTS_RELEASE[17]; }",
    # With a digit that no key has there; two releases do not show such code (docs/design/front.md).
    "a comparison": "int entry(void) { return UTS_RELEASE[17] == '7'; }",
    "a comparison of texts": 'int entry(void) { return __builtin_strcmp(UTS_RELEASE, "6.1.0-k7bab95ddba88zq"); }',
    "a copy": "void entry(char *to) { __builtin_memcpy(to, UTS_RELEASE, 21); }",
    "the placeholder beside it": f'const char *list[] = {{ UTS_RELEASE, "{PLACEHOLDER}" }};',
    "the placeholder in two parts": 'const char *list[] = { UTS_RELEASE, "6.1.0-k000000" "000000zq" };',
    "its name as a text": "#define TEXT(a) #a\n#define SPELT(a) TEXT(a)\nconst char *list[] = { SPELT(UTS_RELEASE), UTS_RELEASE };",
    "a bare release": "#define TEXT(a) #a\n#define SPELT(a) TEXT(a)\nconst char *list[] = { UTS_RELEASE, SPELT(6.1.0-k000000000000zq) };",
}


@pytest.fixture
def bench(tmp_path: Path, program: Path) -> Bench:
    """A folder whose store is empty."""
    made = Bench(tmp_path / "bench", program, release_placeholder=True)
    (made.folder / "include/generated").mkdir(parents=True)
    return made


def release(bench: Bench, key: str) -> str:
    """Write the release of a kernel as kbuild does, and return it."""
    name = f"6.1.0{local_version(key)}"
    (bench.folder / "include/generated/utsrelease.h").write_text(f"#define UTS_RELEASE {json.dumps(name)}\n")
    return name


@pytest.mark.parametrize("source", TEXTS.values(), ids=TEXTS)
def test_another_release_is_answered_with_its_own_characters(bench: Bench, source: str) -> None:
    bench.write(a_c=f'#include "include/generated/utsrelease.h"\n{source}\n')
    release(bench, KEYS[0])
    assert bench.code("front") == bench.code("/usr/bin/gcc")
    assert bench.events() == ["miss"]
    for key in KEYS[1:]:
        name = release(bench, key)
        made = bench.code("front")
        assert made == bench.code("/usr/bin/gcc")
        assert bench.compile("front") == bench.compile("clean")
        assert (name.encode() in made) == ("sizeof" not in source and "strlen" not in source)
        assert bench.events() == ["hit", "hit"]


@pytest.mark.parametrize("source", BOUND.values(), ids=BOUND)
def test_code_that_depends_on_the_releases_characters_is_that_of_a_clean_compile(
    bench: Bench, source: str
) -> None:
    bench.write(a_c=f'#include "include/generated/utsrelease.h"\n{source}\n')
    for key in KEYS:
        release(bench, key)
        for _ in range(2):
            assert bench.code("front") == bench.code("/usr/bin/gcc")


def test_the_same_characters_without_the_release_stay(bench: Bench) -> None:
    bench.write(a_c='#include "include/generated/utsrelease.h"\nconst char banner[] = UTS_RELEASE;\n')
    release(bench, KEYS[0])
    bench.compile("front")
    (bench.folder / "include/generated/utsrelease.h").write_text(f'#define UTS_RELEASE "{PLACEHOLDER}"\n')
    made = bench.code("front")
    assert made == bench.code("/usr/bin/gcc")
    assert PLACEHOLDER.encode() in made


def test_another_part_of_the_release_is_another_file(bench: Bench) -> None:
    bench.write(a_c='#include "include/generated/utsrelease.h"\nconst char banner[] = UTS_RELEASE;\n')
    release(bench, KEYS[0])
    bench.compile("front")
    bench.events()
    path = bench.folder / "include/generated/utsrelease.h"
    path.write_text(path.read_text().replace("6.1.0", "6.1.1"))
    assert bench.code("front") == bench.code("/usr/bin/gcc")
    assert bench.events() == ["miss"]


def test_a_strangers_code_is_compiled_with_each_release(bench: Bench, program: Path, tmp_path: Path) -> None:
    theirs = Bench(tmp_path / "theirs", program)
    (theirs.folder / "include/generated").mkdir(parents=True)
    theirs.write(
        a_c="#include \"include/generated/utsrelease.h\"\nint entry(void) { return UTS_RELEASE[17] == '8'; }\n"
    )
    for key in KEYS:
        release(theirs, key)
        assert theirs.code("front") == theirs.code("/usr/bin/gcc")
    assert theirs.events() == ["miss"] * len(KEYS)
