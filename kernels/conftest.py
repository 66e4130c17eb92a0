# SPDX-License-Identifier: GPL-2.0-or-later
"""One pretend kernel and one state directory for all tests that only build over the base."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernels.builds.builder import Builder, Limits
from kernels.tests.pretend import PretendKernel
from kernels.tests.sources import make_archive
from kernels.trees.tree import SourceTree, import_archive, open_tree


@pytest.fixture(scope="session")
def pretend(tmp_path_factory: pytest.TempPathFactory) -> PretendKernel:
    return PretendKernel(tmp_path_factory.mktemp("pretend"))


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="session")
def builder(home: Path) -> Builder:
    return Builder(home, Limits(seconds=30, memory=1 << 30, cores=2))


@pytest.fixture(scope="session")
def trees(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a read-only directory with the archive that `tree` was made of and, in trees/, that tree."""
    place = tmp_path_factory.mktemp("tree")
    import_archive("fake-6.1", make_archive(place / "a.tar"), place / "trees")
    return place


@pytest.fixture
def tree(trees: Path) -> SourceTree:
    return open_tree("fake-6.1", trees / "trees")
