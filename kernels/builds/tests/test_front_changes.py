# SPDX-License-Identifier: GPL-2.0-or-later
"""The changes of a header that `make bench-front` makes."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest

from bench.front_changes import KINDS, change

HEADER = """#define SIZE 4
#define TWICE(a) a * 2
/* Of a shape. */
struct shape {
	int width;
	int height;
	unsigned long area;
	struct shape *next;
};
enum colour {
	RED,
};
extern int first(int a);
extern int zeroth(int a);
extern int second(int a) __pure;
static inline int both(int a)
{
	if (a)
		return first(a) + second(a);
	return 0;
}
static inline int none(void)
{
	return 0;
}
#ifdef CONFIG_ANY
#endif
#if 1 + 1
#endif
"""


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_change_is_made_and_alters_the_header(kind: str) -> None:
    made = {change(HEADER, kind, 7, random.Random(number)) for number in range(20)}
    assert made - {None}
    assert HEADER not in made


def test_a_header_without_declarations_is_left() -> None:
    assert all(change("", kind, 1, random.Random(1)) is None for kind in KINDS)


@pytest.mark.process
def test_a_missing_build_is_named_with_the_way_out() -> None:
    done = subprocess.run([sys.executable, "-m", "bench.front"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("bench.front: no kernel's build; name one with --build")
    assert done.stderr.count("\n") == 1
