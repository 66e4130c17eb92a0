# SPDX-License-Identifier: GPL-2.0-or-later
"""Sending the files of boots: of those that are over, never of one that is under way or begins meanwhile."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest
from django.core.files import File

from lab.models import Run
from lab.runs.claiming import claim_next_run
from lab.runs.hand_back import release
from lab.runs.pages import runs_under_way
from lab.storage.directory import DirectoryStorage
from lab.storage.store import Store
from lab.tests.factories import ME, finish_builds, make_grid
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


@pytest.mark.process
@pytest.mark.django_db
def test_a_boot_that_begins_again_in_its_folder_while_others_are_sent_keeps_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = make_grid(blocks=2)
    finish_builds(experiment)
    home = tmp_path / "home"
    # A worker that is restarted returns its boot to the queue, and leaves its folder.
    claim = claim_next_run(target="guest", by=ME)
    assert claim is not None
    begun = folder(home, Run.objects.get(pk=claim.id))
    assert release(claim)
    over = folder(home, experiment.runs.exclude(pk=claim.id).order_by("position")[0])

    class Slow(DirectoryStorage):
        def _save(self, name: str, content: File[bytes]) -> str:
            # Meanwhile that worker is back.
            claim_next_run(target="guest", by=ME)
            return super()._save(name, content)

    (tmp_path / "store").mkdir()
    monkeypatch.setattr(run_files, "lab_store", lambda: Store(Slow(location=str(tmp_path / "store"))))
    assert run_files.send_runs(home) == 1
    assert Run.objects.get(pk=claim.id).state == "running"
    assert (begun / "console.log").exists()
    assert not over.exists()
