# SPDX-License-Identifier: GPL-2.0-or-later
"""A dead worker looks dead: on the front page, on the experiment's page, in labctl show and in REST."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from lab.models import Build, Experiment, LostClaim, Run, Target, Worker
from lab.models.states import BuildState, RunState
from lab.runs.claiming import claim_build, claim_next_build
from lab.runs.expired_claims import return_dead_claims
from lab.runs.queues import target_queue
from lab.runs.stalls import PATIENCE_LEASES, current_progress
from lab.tests.factories import finish_builds, make_grid
from workers import tasks
from workers.tests.test_labctl import call

pytestmark = pytest.mark.django_db
LEASE = timedelta(seconds=settings.LEASE_S)


@pytest.fixture(autouse=True)
def one_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No lease expires, and nothing grows older, while a slow machine looks at it in several places."""
    moment = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: moment)


@pytest.fixture
def worker() -> Iterator[subprocess.Popen[bytes]]:
    """A process that stands for a worker of this host; killed at the end at the latest."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.communicate()


@pytest.fixture
def experiment() -> Experiment:
    """One that began a while ago, some of it done: it had a time left."""
    experiment = make_grid(blocks=2)
    began = timezone.now() - timedelta(hours=1)
    Experiment.objects.filter(pk=experiment.pk).update(created_at=began, state="running", started_at=began)
    finish_builds(experiment)
    Build.objects.update(started_at=began, finished_at=began + timedelta(minutes=2))
    first = experiment.runs.order_by("position").first()
    assert first is not None
    Run.objects.filter(pk=first.pk).update(
        state=RunState.DONE, started_at=began, finished_at=began + timedelta(minutes=3)
    )
    return Experiment.objects.get(pk=experiment.pk)


def identity(process: subprocess.Popen[bytes]) -> str:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return f"{socket.gethostname()}:{process.pid}:{fields[19]}"


def booting(experiment: Experiment, by: str, left: timedelta = LEASE) -> None:
    run = experiment.runs.filter(state=RunState.QUEUED).order_by("position").first()
    assert run is not None
    Run.objects.filter(pk=run.pk).update(
        state=RunState.RUNNING,
        claimed_by=by,
        token="t",
        lease_until=timezone.now() + left,
        started_at=timezone.now() - timedelta(minutes=24),
    )


def shown_everywhere(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> list[str]:
    """Return the texts of the four places."""
    client = Client()
    call(monkeypatch, "show", str(experiment.pk), "--local")
    detail = client.get(f"/api/v1/experiments/{experiment.pk}/").json()["progress"]
    assert (detail["eta_s"] is None) == bool(detail["stalled"])
    return [
        client.get("/").content.decode(),
        client.get(f"/experiments/{experiment.pk}/").content.decode(),
        " ".join(capsys.readouterr().out.split()),
        f"{detail['stalled']} {detail['way_out']}",
    ]


@pytest.mark.process
def test_a_worker_killed_in_the_middle_is_reported_on_all_places(
    experiment: Experiment,
    worker: subprocess.Popen[bytes],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    booting(experiment, identity(worker))
    assert current_progress(experiment.pk).eta_s is not None
    for text in shown_everywhere(experiment, monkeypatch, capsys):
        assert "talled" not in text
    worker.kill()
    worker.wait()
    for text in shown_everywhere(experiment, monkeypatch, capsys):
        assert "The worker that was booting p stopped: its process is gone." in text
        assert "Start a worker (labctl work)" in text
        assert f"labctl run {experiment.pk} --local" in text
    for text in shown_everywhere(experiment, monkeypatch, capsys)[:3]:
        assert "talled" in text
        assert " left" not in text


def test_on_another_host_the_lease_says_it_within_its_own_length(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    booting(experiment, "elsewhere:1:1")
    assert current_progress(experiment.pk).stalled == ""
    Run.objects.filter(token="t").update(lease_until=timezone.now() - timedelta(minutes=24))
    for text in shown_everywhere(experiment, monkeypatch, capsys):
        assert "its lease expired 24 min" in text


def test_work_that_was_taken_back_is_stalled_while_no_worker_is_left(experiment: Experiment) -> None:
    """Beat returns the claim after one lease; the dead worker's last report is older than one and a half by then."""
    queue = target_queue(experiment.target.name)
    dead = Worker.objects.create(name="elsewhere:1:1", host="elsewhere", queues=[queue])
    booting(experiment, dead.name, left=timedelta(seconds=-1))
    assert [claim.kind for claim in return_dead_claims()] == ["run"]
    assert current_progress(experiment.pk).stalled == "", "its last report is younger than a lease and a half"
    Worker.objects.update(seen_at=timezone.now() - PATIENCE_LEASES * LEASE - timedelta(seconds=1))
    progress = current_progress(experiment.pk)
    assert progress.stalled == f"No worker takes work from {queue}."
    assert progress.eta_s is None
    Worker.objects.create(name="elsewhere:2:2", host="elsewhere", queues=[queue])
    assert current_progress(experiment.pk).stalled == ""


def test_upkeep_says_which_process_lost_its_claim(
    experiment: Experiment, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    booting(experiment, "elsewhere:1:1", left=timedelta(seconds=-1))
    number = Run.objects.get(claimed_by="elsewhere:1:1").pk
    tasks.return_dead()
    assert f"run {number} was lost by elsewhere:1:1, which is gone or stalled: queued again" in caplog.text
    assert [(row.kind, row.work, row.host) for row in LostClaim.objects.all()] == [
        ("run", number, "elsewhere")
    ]


def test_the_newest_thousand_lost_claims_are_kept(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lab.runs.expired_claims.KEPT", 2)
    for host in ("n1", "n2", "n3"):
        booting(experiment, f"{host}:1:1", left=timedelta(seconds=-1))
        tasks.return_dead()
    assert [row.host for row in LostClaim.objects.all()] == ["n3", "n2"]


@pytest.mark.process
def test_one_live_claim_is_enough_not_to_be_stalled(
    experiment: Experiment, worker: subprocess.Popen[bytes]
) -> None:
    booting(experiment, "elsewhere:1:1", left=timedelta(seconds=-60))
    Run.objects.filter(token="t").update(token="u")
    booting(experiment, identity(worker))
    assert current_progress(experiment.pk).stalled == ""


@pytest.mark.process
def test_a_builder_that_stopped_is_named_with_what_it_built(worker: subprocess.Popen[bytes]) -> None:
    experiment = make_grid(blocks=1)
    Experiment.objects.update(created_at=timezone.now() - timedelta(hours=1))
    assert claim_next_build(by=identity(worker)) is not None
    assert Build.objects.filter(state=BuildState.BUILDING).count() == 1
    worker.kill()
    worker.wait()
    assert current_progress(experiment.pk).stalled.startswith("The worker that was building base stopped")


def test_workers_that_take_nothing_stall_what_waits_for_them(experiment: Experiment) -> None:
    queue = target_queue(experiment.target.name)
    Worker.objects.create(name="box:1:1", host="box", queues=[queue], idle_reason="/secret/path is full")
    progress = current_progress(experiment.pk)
    assert progress.stalled == "The workers for this experiment take no work at the moment."
    assert "secret" not in progress.stalled + progress.way_out
    assert current_progress(experiment.pk, operator=True).stalled == (
        "The workers for this experiment take no work at the moment: box, /secret/path is full."
    )


def test_a_target_that_may_not_boot_is_the_reason(experiment: Experiment) -> None:
    Target.objects.update(enabled=False)
    progress = current_progress(experiment.pk)
    assert experiment.target.name in progress.stalled
    assert "enable" in progress.way_out


def test_what_has_just_begun_or_is_over_is_not_stalled(experiment: Experiment) -> None:
    assert current_progress(make_grid(blocks=1).pk).stalled == ""
    Experiment.objects.filter(pk=experiment.pk).update(state="done")
    assert current_progress(experiment.pk).stalled == ""


def test_a_build_that_another_experiment_waits_for_too_is_claimed_for_both() -> None:
    first, second = make_grid(blocks=1), make_grid(blocks=1)
    Experiment.objects.update(created_at=timezone.now() - timedelta(hours=1))
    build = first.variants.get(name="base").build
    assert build is not None
    second.variants.filter(name="base").update(build=build)
    assert claim_build(build.pk, by="elsewhere:1:1") is not None
    assert current_progress(first.pk).stalled == current_progress(second.pk).stalled == ""
    Build.objects.filter(pk=build.pk).update(lease_until=timezone.now() - timedelta(minutes=3))
    assert "expired 3 min" in current_progress(first.pk).stalled
    assert current_progress(first.pk).stalled == current_progress(second.pk).stalled
