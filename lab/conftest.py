# SPDX-License-Identifier: GPL-2.0-or-later
"""A tiny kernel tree and descriptions of experiments on it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab.experiments.spec import ExperimentSpec, spec_from_mapping
from lab.tests.tiny_tree import diff, make_tiny_tree

Describe = Callable[..., ExperimentSpec]
P1 = {"name": "one", "text": diff("fs/inode.c", 10, "one")}
P2 = {"name": "two", "text": diff("fs/dcache.c", 10, "two")}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_tree(tmp_path_factory.mktemp("source") / "linux")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "trees").mkdir()
    return tmp_path


@pytest.fixture
def describe(repository: Path) -> Describe:
    def make(**fields: Any) -> ExperimentSpec:
        defaults: dict[str, Any] = {
            "name": "x",
            "git": str(repository),
            "base": "v6.1",
            "patches": [P1, P2],
            "cases": [{"workload": "showgids", "preset": "smoke"}],
            "measure": {"boots": 3},
        }
        return spec_from_mapping(defaults | fields)

    return make
