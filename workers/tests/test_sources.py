# SPDX-License-Identifier: GPL-2.0-or-later
"""A build worker that nobody submitted on: its sources come from the tree's place or the store, and are what was submitted."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from kernels.builds.builder import Builder
from kernels.errors import BundleRefused
from kernels.trees.git_bundle import has_commit
from lab.models import Build, Tree
from lab.runs.work_orders import build_order
from lab.storage.artifacts import artifacts_of
from lab.storage.store import Store
from lab.submission.shared_sources import name_in_store
from lab.submission.submit import submit_experiment
from lab.tests.stores import directory_store
from workers.errors import SourceMissing
from workers.loop import Scope, take_all
from workers.sources import bring_sources
from workers.tests.conftest import FakeLab

pytestmark = pytest.mark.process


@pytest.fixture
def submitted(fake_lab: FakeLab, settings: Any, tmp_path: Path) -> Store:
    """A store and, on the other machine, an experiment with a patch; its tree is of that machine alone."""
    store = directory_store(settings, tmp_path / "store")
    patch = fake_lab.diff("fs/inode.c", "\tWARN_HERE();\n", "")
    submit_experiment(spec=fake_lab.spec({"p": patch}), home=fake_lab.home)
    Tree.objects.update(location="/nowhere/here")
    return store


def repository(home: Path) -> Path:
    return home / "trees" / f"{Tree.objects.get().name}.git"


def patched() -> Build:
    return Build.objects.get(variants__name="p")


def test_a_worker_without_the_tree_builds_what_was_submitted_elsewhere(
    submitted: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "worker"
    monkeypatch.setattr(
        "workers.loop.Builder",
        lambda _, artifacts, front, spare: Builder(
            home, artifacts=artifacts_of(home), front=front, spare=spare
        ),
    )
    take_all(Scope(boots=False))
    assert set(Build.objects.values_list("state", "problem")) == {("built", "")}
    assert (home / "artifacts" / patched().artifact_key / "vmlinux").is_file()


def test_what_has_come_is_not_fetched_again(submitted: Store, tmp_path: Path) -> None:
    order = build_order(patched().pk)
    bring_sources(order, tmp_path / "worker", lambda: None)
    assert has_commit(repository(tmp_path / "worker"), order.commit)
    shutil.rmtree(Path(submitted.storage.location) / "sources")
    bring_sources(order, tmp_path / "worker", lambda: None)


def test_a_tree_that_the_worker_can_fetch_itself_is_fetched(
    submitted: Store, fake_lab: FakeLab, tmp_path: Path
) -> None:
    Tree.objects.update(location=str(fake_lab.kernel.work))
    order = build_order(patched().pk)
    submitted.remove(name_in_store(order.request["base_commit"]))
    bring_sources(order, tmp_path / "worker", lambda: None)
    assert has_commit(repository(tmp_path / "worker"), order.commit)


def test_a_commit_that_is_nowhere_is_said_to_be(submitted: Store, tmp_path: Path) -> None:
    order = build_order(patched().pk)
    submitted.remove(name_in_store(order.commit))
    with pytest.raises(SourceMissing, match="is neither where the tree comes from nor in the store"):
        bring_sources(order, tmp_path / "worker", lambda: None)


def test_files_other_than_those_submitted_are_refused(submitted: Store, tmp_path: Path) -> None:
    Build.objects.filter(pk=patched().pk).update(tree_id="1" * 40)
    with pytest.raises(BundleRefused, match="has other files than were submitted"):
        bring_sources(build_order(patched().pk), tmp_path / "worker", lambda: None)
