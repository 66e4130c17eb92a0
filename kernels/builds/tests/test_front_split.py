# SPDX-License-Identifier: GPL-2.0-or-later
"""The fuzzer of how the compiler front splits a file, and the programs that benchmarks make of the front's parts."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

import bench.front_split
from bench.front_forms import declarations, use
from bench.front_split import edited
from kernels.builds.front_program import FLAGS
from kernels.builds.front_sources import SOURCES

TEXT = (
    '# 0 "a.c"\n# 1 "h.h"\nextern int outside(int a);\n# 1 "a.c"\nint entry(int a) { return outside(a); }\n'
)


PROGRAMS = sorted(Path(bench.front_split.__file__).parent.glob("front_*.cc"))


@pytest.mark.process
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.name)
def test_the_program_of_a_benchmark_fits_the_parts_of_the_front(program: Path) -> None:
    made = subprocess.run(
        ["g++", *FLAGS, "-fsyntax-only", f"-I{SOURCES}", program], capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr


def test_a_seed_makes_the_same_declarations_again() -> None:
    made = [[declarations(["outside"], 1, random.Random(seed)) for seed in range(50)] for _ in range(2)]
    assert made[0] == made[1]
    assert len(set(made[0])) > 20


def test_no_place_of_a_form_is_left_open() -> None:
    for seed in range(300):
        chance = random.Random(seed)
        text = declarations(["outside"], 3, chance) + use(["outside"], 3, chance)
        assert not re.search(r"\b[TDE]\b|[a-z_]N\b", text), text


def test_an_edit_stands_between_declarations_of_the_text() -> None:
    text = edited(TEXT, 2, random.Random(4))
    assert '# 1 "kp.h" 1\n' in text
    assert all(line in text for line in TEXT.splitlines())


@pytest.mark.process
def test_a_directory_that_is_no_prepared_kernel_is_named(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench.front_split", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(f"bench.front_split: {tmp_path} is not a prepared kernel; run: make O=")
    assert done.stderr.count("\n") == 1
