# SPDX-License-Identifier: GPL-2.0-or-later
"""Two machines with one store: built on one, booted on the other; what is spoilt is built again; room is made."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import pytest

from kernels.artifacts.store import METADATA, ArtifactStore
from kernels.errors import ArtifactCorrupt, ArtifactMissing
from kernels.tests.kept import begin_with_programs
from lab.errors import StoreLacks
from lab.models import Build, Experiment, Run
from lab.runs.claim import MOST_ATTEMPTS
from lab.runs.record import forget_artifact
from lab.runs.settle import settle
from lab.storage.artifacts import artifacts_of, in_store, in_use, send_artifact
from lab.storage.files import KeptFile
from lab.storage.store import Store
from lab.submission.submit import submit_experiment
from lab.tests.made import files_of, key_of, make_artifact
from lab.tests.stores import directory_store
from lab.tests.stores import moto as moto
from lab.tests.stores import store as store
from workers import artifact_transfer as carry
from workers.errors import ClaimLost
from workers.loop import Scope, take_all, take_one
from workers.run import MOST_CORRUPT, Bench
from workers.tests.conftest import FakeLab

pytestmark = pytest.mark.process

KEY = key_of(1)


class Machines:
    """A lab whose server and build worker are one machine, whose guests boot on another."""

    def __init__(self, lab: FakeLab, settings: Any, other: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lab, self.settings, self.other = lab, settings, other
        bench = Bench(other, {"libvirt": lab.driver})
        monkeypatch.setattr("workers.loop.make_bench", lambda home: bench)

    def submit(self) -> Experiment:
        return submit_experiment(spec=self.lab.spec({}), home=self.lab.home)

    def build(self) -> None:
        take_all(Scope(boots=False))

    def boot(self, times: int = 1000) -> None:
        self.settings.HOME = self.other
        try:
            while times and take_one(Scope(builds=False)):
                times -= 1
        finally:
            self.settings.HOME = self.lab.home


@pytest.fixture
def machines(fake_lab: FakeLab, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machines:
    (tmp_path / "other").mkdir()
    return Machines(fake_lab, settings, begin_with_programs(tmp_path / "other"), monkeypatch)


def spoil(store: Store) -> None:
    """Change a byte of the largest file in a directory store."""
    files = [path for path in Path(store.storage.location).glob("artifacts/*/*") if path.name != METADATA]
    largest = max(files, key=lambda path: path.stat().st_size)
    data = bytearray(largest.read_bytes())
    data[len(data) // 2] ^= 255
    largest.write_bytes(data)


def test_a_kernel_built_on_one_machine_boots_on_another(store: Store, machines: Machines) -> None:
    experiment = machines.submit()
    machines.build()
    assert Build.objects.get().state == "built"
    assert in_store(Build.objects.get().artifact_key)
    machines.boot()
    settle(experiment.pk)
    experiment.refresh_from_db()
    assert experiment.state == "done"
    run = Run.objects.first()
    assert run is not None
    assert run.console == f"runs/{run.pk}-1/console.log"
    assert list((machines.other / "runs").iterdir()) == []
    for name in (run.console, f"runs/{run.pk}-1/records.bin", Build.objects.get().log):
        # The server has neither; its pages read them from the store.
        assert b"".join(KeptFile(name).pieces())
    key = Build.objects.get().artifact_key
    assert files_of(artifacts_of(machines.other).get(key)) == files_of(
        artifacts_of(machines.lab.home).get(key)
    )


def test_run_files_wait_here_for_a_store_that_does_not_answer(
    machines: Machines, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = directory_store(settings, tmp_path / "store")
    machines.submit()
    machines.build()
    (tmp_path / "store" / "runs").write_text("in the way")
    machines.boot(1)
    first = Run.objects.get(state="done")
    assert (machines.other / first.console).is_file()
    (tmp_path / "store" / "runs").unlink()
    machines.boot(1)
    assert store.has(first.console)
    assert list((machines.other / "runs").iterdir()) == []


def test_without_a_store_the_other_machine_has_it_built_again(machines: Machines) -> None:
    machines.submit()
    machines.build()
    machines.boot(1)
    assert (Build.objects.get().state, Build.objects.get().corrupted) == ("queued", 0)


@pytest.mark.thorough
def test_a_spoilt_artifact_is_removed_counted_and_built_again(
    machines: Machines, settings: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = directory_store(settings, tmp_path / "store")
    experiment = machines.submit()
    machines.build()
    spoil(store)
    with caplog.at_level(logging.WARNING):
        machines.boot(1)
    build = Build.objects.get()
    assert (build.state, build.corrupted) == ("queued", 1)
    assert not in_store(build.artifact_key)
    assert not (machines.other / "artifacts" / build.artifact_key).exists()
    assert any(
        "is corrupt: removed there, to be built again" in record.getMessage() for record in caplog.records
    )
    assert Run.objects.filter(state="queued", attempt=0).count() == Run.objects.count()
    machines.build()
    machines.boot()
    settle(experiment.pk)
    experiment.refresh_from_db()
    assert experiment.state == "done"


def test_a_store_that_spoils_everything_ends_in_a_fault_of_the_lab(
    machines: Machines, settings: Any, tmp_path: Path
) -> None:
    store = directory_store(settings, tmp_path / "store")
    machines.submit()
    for _ in range(MOST_CORRUPT):
        machines.build()
        spoil(store)
        machines.boot(1)
    assert Run.objects.exclude(state="queued").count() == 0
    machines.build()
    spoil(store)
    machines.boot(1)
    run = Run.objects.exclude(outcome="").get()
    assert (run.outcome, run.blame) == ("lost", "lab")
    assert "is not what was built" in run.problem


def test_a_build_worker_takes_what_the_store_has(
    machines: Machines, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory_store(settings, tmp_path / "store")
    machines.submit()
    machines.build()
    made = Build.objects.get()
    ArtifactStore(machines.lab.home / "artifacts").remove(made.artifact_key)
    assert forget_artifact(made.pk)
    machines.build()
    build = Build.objects.get()
    assert (build.state, build.cached, build.cpu_seconds) == ("built", True, 0)


def test_a_store_that_lacks_what_is_written_to_it_is_waited_for(
    machines: Machines, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory_store(settings, tmp_path / "store")
    machines.submit()
    answers = [StoreLacks("the store has no artifacts/x")] * MOST_ATTEMPTS

    def send(*arguments: Any) -> int:
        if answers:
            raise answers.pop()
        return send_artifact(*arguments)

    monkeypatch.setattr(carry, "send_artifact", send)
    monkeypatch.setattr(carry, "sleep", lambda _s: None)
    machines.build()
    build = Build.objects.get()
    assert (build.state, build.attempt, in_store(build.artifact_key)) == ("built", 1, True)


def test_a_store_that_comes_back_costs_a_boot_none_of_its_attempts(
    machines: Machines, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory_store(settings, tmp_path / "store")
    machines.submit()
    machines.build()
    kernels, away = tmp_path / "store" / "artifacts", tmp_path / "away"
    kernels.rename(away)
    kernels.write_text("in the way")
    looked: list[float] = []

    def pause(seconds: float) -> None:
        looked.append(seconds)
        if len(looked) == MOST_ATTEMPTS + 1:
            kernels.unlink()
            away.rename(kernels)

    monkeypatch.setattr(carry, "sleep", pause)
    machines.boot(1)
    assert len(looked) == MOST_ATTEMPTS + 1
    assert Run.objects.get(state="done").attempt == 1


def test_a_store_that_is_away_is_logged_at_once_then_each_minute_and_when_it_is_back(
    machines: Machines,
    settings: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    directory_store(settings, tmp_path / "store")
    machines.submit()
    machines.build()
    kernels, away = tmp_path / "store" / "artifacts", tmp_path / "away"
    kernels.rename(away)
    kernels.write_text("in the way")
    now = 1000.0

    def pause(seconds: float) -> None:
        nonlocal now
        now += seconds
        if now == 1150.0:
            kernels.unlink()
            away.rename(kernels)

    monkeypatch.setattr(carry, "sleep", pause)
    monkeypatch.setattr(carry, "monotonic", lambda: now)
    caplog.clear()
    with caplog.at_level(logging.INFO, carry.__name__):
        carry.bring(machines.other, Build.objects.get().artifact_key)
    lines = [(record.levelname, record.getMessage().split(":")[0]) for record in caplog.records]
    assert lines == [("WARNING", "waiting for the store")] * 3 + [("INFO", "the store is back after 150 s")]


def test_waiting_for_a_store_ends_when_the_work_is_cancelled(settings: Any, tmp_path: Path) -> None:
    directory_store(settings, tmp_path / "store")
    (tmp_path / "store" / "artifacts").write_text("in the way")

    def cancelled() -> None:
        raise ClaimLost("cancelled")

    with pytest.raises(ClaimLost):
        carry.bring(tmp_path, KEY, cancelled)


def test_a_build_whose_store_does_not_answer_is_tried_again(
    machines: Machines, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(carry, "AWAY_S", 0.0)
    directory_store(settings, tmp_path / "store")
    machines.submit()
    (tmp_path / "store" / "artifacts").write_text("in the way")
    assert take_one(Scope(boots=False))
    build = Build.objects.get()
    assert (build.state, build.blame) == ("queued", "lab")
    assert "the store" in build.problem
    (tmp_path / "store" / "artifacts").unlink()
    machines.build()
    assert Build.objects.get().state == "built"


def test_what_was_not_used_for_longest_makes_room_and_nothing_in_use_does(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, home = directory_store(settings, tmp_path / "store"), tmp_path / "home"
    artifacts = ArtifactStore(home / "artifacts")
    made = [make_artifact(home, number, size=100_000) for number in range(6)]
    for age, artifact in enumerate(made):
        if artifact.key != key_of(5):
            send_artifact(store, artifact)
        os.utime(artifact.directory / METADATA, (1e9 + age, 1e9 + age))
    size = sum(path.stat().st_size for path in made[0].directory.rglob("*"))
    monkeypatch.setattr(carry, "most_bytes", lambda home: int(2.5 * size))
    os.utime(made[5].directory / METADATA, (1e8, 1e8))  # the oldest, but nowhere else
    with in_use(home, key_of(0)), carry.at_hand(home, key_of(1)):
        assert carry.make_room(home) >= 2 * size
        left = [number for number in range(6) if artifacts.has(key_of(number))]
        # 1 was just used, 0 is in use, 5 is in no store.
        assert left == [0, 1, 5]
    assert carry.make_room(home) >= size
    assert [number for number in range(6) if artifacts.has(key_of(number))] == [1, 5]


def test_without_a_store_nothing_makes_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_artifact(tmp_path)
    monkeypatch.setattr(carry, "most_bytes", lambda home: 0)
    assert carry.make_room(tmp_path) == 0
    assert ArtifactStore(tmp_path / "artifacts").has(KEY)


def test_what_is_in_neither_place_is_missing(settings: Any, tmp_path: Path) -> None:
    directory_store(settings, tmp_path / "store")
    with pytest.raises(ArtifactMissing), carry.at_hand(tmp_path / "home", KEY):
        pass


def test_a_copy_here_of_another_size_is_removed(settings: Any, tmp_path: Path) -> None:
    made = make_artifact(tmp_path)
    made.vmlinux.write_bytes(b"short")
    with pytest.raises(ArtifactCorrupt), carry.at_hand(tmp_path, KEY):
        pass
    assert not made.directory.exists()
