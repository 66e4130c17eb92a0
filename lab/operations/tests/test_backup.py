# SPDX-License-Identifier: GPL-2.0-or-later
"""A lab's whole store goes through a backup into an empty machine: rows, files, pages; and what else may be handed to restore."""

from __future__ import annotations

import json
import signal
import stat
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from kernels.files.scratch import scratch
from lab.tests.clusters import cluster
from lab.tests.labs import CLEAN, PAGES, ROOT, Lab, edited, filled, first_difference

# Whole labs, each with a database and command lines of its own.
pytestmark = pytest.mark.service
# The two experiments whose runs have files in a lab that is filled.
KEPT, NOT_KEPT = 3, 4


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    home = tmp_path_factory.mktemp("first")
    if request.param == "sqlite":
        yield filled(home, "")
    else:
        with cluster() as url:
            yield filled(home, url)


@pytest.fixture(scope="module")
def backup(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("backups") / "lab.zip"
    output = lab.labctl("backup", str(file), "--files", "kept").stdout
    # A console and a profile of each run, and the kernel of the kept experiment.
    files = 2 * len(run_folders(lab, KEPT)) + 1
    assert f"rows, {files} files," in output.replace("\n", "")
    return file


def small_and_stopped(lab: Lab) -> None:
    """Fill the lab with one experiment, and stop it."""
    lab.run("-m", "bench.load_store", "--experiments", "1", "--samples", "300")
    stop_workers(lab)


def stop_workers(lab: Lab) -> None:
    """Have the lab's workers seen long ago, so that it may be restored over."""
    stop = "Worker.objects.update(seen_at=timezone.now() - timedelta(days=1))"
    imports = (
        "from datetime import timedelta; from django.utils import timezone; from lab.models import Worker"
    )
    lab.run("-c", f"import django; django.setup(); {imports}; {stop}")


def run_folders(lab: Lab, experiment: int) -> set[str]:
    """Return the names of the folders that the experiment's runs have on the lab's disk."""
    code = (
        "import sys, django; django.setup(); from lab.models import Run;"
        "print(*Run.objects.filter(experiment=int(sys.argv[1])).values_list('directory', flat=True))"
    )
    folders = {Path(name) for name in lab.run("-c", code, str(experiment)).stdout.split()}
    assert folders
    assert all((lab.home / folder).is_dir() for folder in folders)
    return {folder.name for folder in folders}


@pytest.fixture
def empty(lab: Lab, tmp_path: Path) -> Iterator[Lab]:
    """An empty machine with an empty cluster of the same kind."""
    home = tmp_path / "second"
    if not lab.url:
        yield Lab(home, "")
    else:
        with cluster() as url:
            yield Lab(home, url)


def test_an_empty_machine_becomes_the_lab_row_for_row_and_page_for_page(
    lab: Lab, backup: Path, empty: Lab
) -> None:
    done = empty.labctl("restore", str(backup))
    assert "restored the lab of" in done.stdout
    before, after = lab.rows(), empty.rows()
    assert before.keys() == after.keys()
    assert len(before["lab_sample"]) > 3000
    assert [name for name in before if before[name] != after[name]] == []
    assert (empty.home / "secret.key").read_text() == (lab.home / "secret.key").read_text()
    assert stat.S_IMODE((empty.home / "secret.key").stat().st_mode) == 0o600
    pages = lab.pages()
    assert [line.split()[1] for line in pages] == ["200"] * len(PAGES)
    assert [first_difference(a, b) for a, b in zip(pages, empty.pages(), strict=True) if a != b] == []
    assert not list(empty.home.glob(".restoring*"))
    # New rows are numbered after the old ones.
    code = "import django; django.setup(); from lab.models import Tree; print(Tree.objects.create(name='new', kind='git').pk)"
    assert int(empty.run("-c", code).stdout) == len(before["lab_tree"]) + 1


def test_only_what_kept_experiments_need_goes_along(lab: Lab, backup: Path) -> None:
    with zipfile.ZipFile(backup) as archive:
        names = archive.namelist()
    runs = {name.split("/")[2] for name in names if name.startswith("files/runs/")}
    assert runs == run_folders(lab, KEPT)
    assert runs.isdisjoint(run_folders(lab, NOT_KEPT))
    assert "files/artifacts/abc/vmlinux" in names
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600


def test_a_backup_beside_a_worker_that_fetches_a_kernel_can_be_restored(
    lab: Lab, empty: Lab, tmp_path: Path
) -> None:
    file = tmp_path / "all.zip"
    with scratch(lab.home / "artifacts" / ".coming") as coming:
        (coming / "vmlinux").write_bytes(b"half")
        lab.labctl("backup", str(file), "--files", "all")
    empty.labctl("restore", str(file))
    assert sorted(path.name for path in (empty.home / "artifacts").rglob("*")) == ["abc", "vmlinux"]


def test_a_backup_is_made_while_folders_of_runs_are_sent_and_removed(lab: Lab, tmp_path: Path) -> None:
    over = Event()

    def come_and_go() -> None:
        while not over.is_set():
            folders = [lab.home / "runs" / f"{number}-1" for number in range(900_000, 901_000)]
            for folder in folders:
                folder.mkdir()
            for folder in folders:
                folder.rmdir()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(come_and_go)
        try:
            for number in range(3):
                lab.labctl("backup", str(tmp_path / f"{number}.zip"), "--files", "all")
        finally:
            over.set()


def test_no_password_of_the_environment_is_in_a_backup(lab: Lab, backup: Path) -> None:
    with zipfile.ZipFile(backup) as archive:
        manifest = json.loads(archive.read("manifest.json"))
    assert "s3cr3t-pw" not in json.dumps(manifest)
    assert "KPERFLAB_SMTP" not in manifest["settings"]


def test_a_lab_that_is_there_is_lost_only_when_asked_for(lab: Lab, backup: Path, empty: Lab) -> None:
    small_and_stopped(empty)
    before = empty.rows()
    refused = empty.labctl("restore", str(backup), ok=False)
    assert refused.returncode == 64
    assert (
        "this lab has experiments already: restore elsewhere, or give --replace to lose them"
        in refused.stderr
    )
    assert empty.rows() == before
    empty.labctl("restore", str(backup), "--replace")
    assert len(empty.rows()["lab_experiment"]) == 6


def test_a_backup_of_older_code_is_brought_forward_and_one_of_newer_code_refused(
    lab: Lab, empty: Lab, tmp_path: Path
) -> None:
    older = Lab(empty.home.with_name("older"), empty.url)
    older.run("manage.py", "migrate", "lab", "0033_build_steps", "--verbosity", "0")
    code = "import django; django.setup(); from lab.models import Tree; Tree.objects.create(name='old', kind='git')"
    older.run("-c", code)
    file = tmp_path / "older.zip"
    older.labctl("backup", str(file))
    output = older.labctl("restore", str(file), "--replace").stdout
    assert "then " in output
    assert "migrations" in output
    assert older.run("manage.py", "migrate", "--check").returncode == 0
    assert [row[1] for row in older.rows()["lab_tree"]] == ["old"]
    newer = edited(
        file, tmp_path / "newer.zip", lambda manifest: manifest["migrations"].append("lab.9999_of_tomorrow")
    )
    refused = older.labctl("restore", str(newer), "--replace", ok=False)
    assert (
        "is of newer code, kperflab 0.1.0 with lab.9999_of_tomorrow: update this machine first"
        in refused.stderr
    )


def test_a_restore_that_fails_half_way_leaves_everything_as_it_was(
    lab: Lab, backup: Path, empty: Lab, tmp_path: Path
) -> None:
    small_and_stopped(empty)
    before, key = empty.rows(), (empty.home / "secret.key").read_text()

    def one_row_more(manifest: dict[str, Any]) -> None:
        manifest["tables"]["lab_sample"]["rows"] += 1

    file = edited(backup, tmp_path / "odd.zip", one_row_more)
    refused = empty.labctl("restore", str(file), "--replace", ok=False)
    assert refused.returncode == 64
    assert "its table lab_sample has" in refused.stderr
    assert (empty.rows(), (empty.home / "secret.key").read_text()) == (before, key)
    assert not list(empty.home.glob(".restoring*"))
    assert not list(empty.home.glob(".*.restoring*"))


def test_a_restore_that_is_killed_in_its_last_step_is_completed_by_the_same_command(
    lab: Lab, backup: Path, empty: Lab
) -> None:
    killed = (
        "import os, signal, sys, django; django.setup(); from pathlib import Path; from lab.operations.backup import restore\n"
        "restore._put_in_place = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "restore.restore(Path(sys.argv[1]), replace=False, say=print)\n"
    )
    assert empty.run("-c", killed, str(backup), ok=False).returncode == -signal.SIGKILL
    assert len(empty.rows()["lab_experiment"]) == len(lab.rows()["lab_experiment"])
    assert not (empty.home / "artifacts").exists()
    stop_workers(empty)
    empty.labctl("restore", str(backup))
    assert (empty.home / "artifacts" / "abc" / "vmlinux").exists()
    assert (empty.home / "secret.key").read_text() == (lab.home / "secret.key").read_text()
    assert not list(empty.home.glob(".restoring*"))
    stop_workers(empty)
    refused = empty.labctl("restore", str(backup), ok=False)
    assert "this lab has experiments already" in refused.stderr


def test_a_restore_beside_another_one_is_refused_and_takes_nothing_from_it(
    lab: Lab, backup: Path, empty: Lab
) -> None:
    beside = (
        "import subprocess, sys, django; django.setup(); from pathlib import Path\n"
        "from lab.operations.backup.restore import restore\n"
        "def again(_): subprocess.run([sys.executable, '-m', 'workers.labctl', 'lab', 'restore', sys.argv[1]], check=False)\n"
        "restore(Path(sys.argv[1]), replace=False, say=again)\n"
    )
    done = empty.run("-c", beside, str(backup))
    assert done.stderr.count("another restore into") == 2
    assert len(empty.rows()["lab_experiment"]) == len(lab.rows()["lab_experiment"])
    assert (empty.home / "artifacts" / "abc" / "vmlinux").exists()


def test_a_backup_made_while_others_write_is_of_one_moment(lab: Lab, tmp_path: Path) -> None:
    """Each experiment that is added brings a switch with it: a backup has as many of either."""
    add = (
        "import sys, django; django.setup(); from django.db import transaction; from lab.models import Experiment, Switch\n"
        "for number in range(150):\n"
        "  with transaction.atomic():\n"
        "    one = Experiment.objects.get(pk=1); one.pk = None; one.name = 'twin'; one.save()\n"
        "    Switch.objects.create(experiment=one, position=9, name='twin', kind='patch', text='')\n"
    )
    environment = CLEAN | {
        "KPERFLAB_HOME": str(lab.home),
        "PYTHONPATH": str(ROOT),
        "KPERFLAB_DATABASE": lab.url,
    }
    environment |= {"DJANGO_SETTINGS_MODULE": "lab.settings"}
    with subprocess.Popen([sys.executable, "-c", add], cwd=ROOT, env=environment) as writer:
        pairs: list[tuple[int, int]] = []
        while writer.poll() is None:
            file = tmp_path / f"{len(pairs)}.zip"
            lab.labctl("backup", str(file))
            with zipfile.ZipFile(file) as archive:
                tables = json.loads(archive.read("manifest.json"))["tables"]
            pairs.append((tables["lab_experiment"]["rows"], tables["lab_switch"]["rows"]))
    assert pairs
    assert [pair for pair in pairs if pair[0] != pair[1]] == []
