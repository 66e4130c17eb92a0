# SPDX-License-Identifier: GPL-2.0-or-later
"""Sending the files of boots: of those that are over, never of one that is under way or begins meanwhile."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from lab.models import Run
from lab.runs.pages import runs_under_way
from lab.storage.directory import DirectoryStorage
from lab.storage.store import Store
from lab.tests.factories import make_grid
from workers import run_files


def folder(home: Path, run: Run) -> Path:
    path = home / "runs" / f"{run.pk}-{run.attempt}"
    path.mkdir(parents=True)
    (path / "console.log").write_text("Linux")
    return path


@pytest.mark.process  # a tree of strangers is removed by rm
@pytest.mark.django_db
def test_a_boot_that_begins_while_files_are_looked_for_keeps_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    over, running, later = make_grid(blocks=2).runs.order_by("position")[:3]
    Run.objects.filter(pk=running.pk).update(state="running")
    store = Store(DirectoryStorage(location=str(tmp_path / "store")))
    (tmp_path / "store").mkdir()
    monkeypatch.setattr(run_files, "lab_store", lambda: store)
    home = tmp_path / "home"
    sent, kept = folder(home, over), [folder(home, running)]

    def begun_then_asked(among: Collection[int]) -> set[str]:
        under_way = runs_under_way(among)
        # Another target's worker on this host claims its boot now.
        Run.objects.filter(pk=later.pk).update(state="running")
        kept.append(folder(home, later))
        return under_way

    monkeypatch.setattr(run_files, "runs_under_way", begun_then_asked)
    assert run_files.send_runs(home) == 1
    assert not sent.exists()
    assert store.read(f"runs/{over.pk}-0/console.log", 100) == b"Linux"
    assert all((path / "console.log").exists() for path in kept)
