# SPDX-License-Identifier: GPL-2.0-or-later
"""The version of the code: different sources have different versions."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lab.leases import version
from lab.leases.version import PACKAGES, code_version


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what this process runs."""
    copy = tmp_path_factory.mktemp("sources")
    for package in PACKAGES:
        shutil.copytree(
            version.ROOT / package,
            copy / package,
            ignore=shutil.ignore_patterns("tests", "__pycache__", "node_modules"),
        )
    return copy


def test_a_copy_of_the_sources_is_the_same_version(sources: Path) -> None:
    assert code_version(sources) == code_version()


@pytest.mark.parametrize(
    "name",
    [
        "workloads/programs/stat-walk/mount.sh",
        "workloads/programs/bh-lookup/Kbuild",
        "workers/microscope/native/replay/replay.cc",
        "workers/collect/console_forms.tsv",
    ],
)
def test_a_change_in_whatever_measures_or_judges_is_another_version(sources: Path, name: str) -> None:
    """Else a worker that has not been updated would take boots of an experiment beside those that have."""
    text = (sources / name).read_text()
    (sources / name).write_text(text + "\n")
    code_version.cache_clear()
    assert code_version(sources) != code_version()
    (sources / name).write_text(text)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_change_in_any_package_is_another_version(sources: Path, package: str) -> None:
    changed = next((sources / package).rglob("*.py"))
    text = changed.read_text()
    changed.write_text(text + "\n# changed\n")
    code_version.cache_clear()
    assert code_version(sources) != code_version()
    changed.write_text(text)
