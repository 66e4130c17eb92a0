# SPDX-License-Identifier: GPL-2.0-or-later
from pathlib import Path

import pytest

from kernels.builds.front_program import compile_front
from kernels.tests.kept import kept


@pytest.fixture(scope="session")
def program() -> Path:
    """The front, compiled once for these sources."""
    return compile_front(kept("front"))
