# SPDX-License-Identifier: GPL-2.0-or-later
"""One pretend kernel and one state directory for all that only build over the base."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernels.build import Builder, Limits
from kernels.tests.pretend import PretendKernel


@pytest.fixture(scope="session")
def pretend(tmp_path_factory: pytest.TempPathFactory) -> PretendKernel:
    return PretendKernel(tmp_path_factory.mktemp("pretend"))


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="session")
def builder(home: Path) -> Builder:
    return Builder(home, Limits(seconds=30, memory=1 << 30, cores=2))
