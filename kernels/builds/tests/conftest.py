# SPDX-License-Identifier: GPL-2.0-or-later
from pathlib import Path

import pytest

from kernels.builds.front_program import compile_front
from kernels.builds.tests.front_runs import Bench
from kernels.tests.kept import kept


@pytest.fixture(scope="session")
def program() -> Path:
    """The front, compiled once for these sources."""
    return compile_front(kept("front"))


@pytest.fixture
def bench(tmp_path: Path, program: Path) -> Bench:
    """A folder whose store is empty."""
    return Bench(tmp_path / "bench", program)
