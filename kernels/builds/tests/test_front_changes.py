# SPDX-License-Identifier: GPL-2.0-or-later
"""The changes of a header that `make bench-front` makes."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest

from bench.front_changes import ADDED, CHANGED, change

HEADER = """#define SIZE 4
struct shape {
	int width;
};
extern int first(int a);
extern int second(int a);
static inline int both(int a)
{
	return first(a) + second(a);
}
"""


def test_every_kind_of_change_is_made_and_alters_the_header() -> None:
    chance = random.Random(1)
    made = [change(HEADER, number, chance) for number in range(400)]
    assert {entry[0] for entry in made if entry} == {*ADDED, *CHANGED}
    assert all(entry[1] != HEADER for entry in made if entry)


def test_a_header_without_declarations_is_left() -> None:
    assert all(change("", number, random.Random(number)) is None for number in range(50))


@pytest.mark.process
def test_a_missing_build_is_named_with_the_way_out() -> None:
    done = subprocess.run([sys.executable, "-m", "bench.front"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("bench.front: no kernel's build; name one with --build")
    assert done.stderr.count("\n") == 1
