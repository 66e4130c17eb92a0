# SPDX-License-Identifier: GPL-2.0-or-later
"""Answers that are compiled all the same: right ones are given, wrong ones are found, and their entries removed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kernels.builds.compiled_files import TRUSTED, CompiledFiles
from kernels.builds.front_program import FrontSettings, place_front
from kernels.builds.tests.front_runs import IDENTITY, Bench

pytestmark = pytest.mark.process

RIGHT, WRONG = "int f(int a) { return a + 1; }\n", "int f(int a) { return a + 2; }\n"


@pytest.fixture
def mistaken(bench: Bench) -> Bench:
    """A folder whose store answers RIGHT with the object of WRONG."""
    made = {}
    for text in (RIGHT, WRONG):
        known = set(bench.store.glob("*/*.o"))
        bench.write(a_c=text)
        bench.compile()
        (made[text],) = set(bench.store.glob("*/*.o")) - known
    shutil.copyfile(made[WRONG], made[RIGHT])
    bench.write(a_c=RIGHT)
    bench.events()
    return bench


@pytest.fixture
def prove() -> Callable[[Bench, int], None]:
    def again(bench: Bench, among: int) -> None:
        """Have one answer in so many compiled all the same."""
        place_front(
            bench.program,
            bench.folder / "front",
            FrontSettings("gcc", IDENTITY, [], str(bench.store), prove=among),
        )

    return again


def test_a_right_answer_stands(bench: Bench, prove: Callable[[Bench, int], None]) -> None:
    bench.write(h_h="static inline int g(int a) { return a; }\n", a_c='#include "h.h"\n' + RIGHT)
    first = bench.compile()
    prove(bench, 1)
    assert bench.compile() == first
    assert bench.events()[-1] == "proven"


def test_a_wrong_answer_is_compiled_and_told(mistaken: Bench, prove: Callable[[Bench, int], None]) -> None:
    prove(mistaken, 1)
    wrong = mistaken.compile("front")
    assert wrong == mistaken.compile("/usr/bin/gcc")
    assert mistaken.events()[-2:] == ["hit", "differs"]


def test_unless_it_is_drawn_an_answer_is_given_as_it_is(
    mistaken: Bench, prove: Callable[[Bench, int], None]
) -> None:
    prove(mistaken, 0)
    assert mistaken.code("front") != mistaken.code("/usr/bin/gcc")
    assert mistaken.events() == ["hit"]


def test_one_answer_in_so_many_is_drawn(bench: Bench, prove: Callable[[Bench, int], None]) -> None:
    bench.write(a_c=RIGHT)
    bench.compile()
    prove(bench, 2)
    for _ in range(40):
        bench.compile()
    assert 0 < bench.events().count("proven") < 40


def test_the_entry_of_a_wrong_answer_is_removed(
    mistaken: Bench, prove: Callable[[Bench, int], None], tmp_path: Path
) -> None:
    stores = CompiledFiles(tmp_path / "stores")
    stores.take(TRUSTED, mistaken.store)
    prove(mistaken, 1)
    mistaken.compile()
    (line,) = [line for line in (mistaken.store / "counts").read_text().splitlines() if "differs" in line]
    key = line.split()[1]
    assert stores.read(TRUSTED, f"{key[:2]}/{key[2:]}")
    assert stores.follow(TRUSTED, mistaken.store)["differs"] == 1
    assert not stores.read(TRUSTED, f"{key[:2]}/{key[2:]}")
