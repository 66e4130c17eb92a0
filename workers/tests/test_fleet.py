# SPDX-License-Identifier: GPL-2.0-or-later
"""A fleet's parts without its services: wake-ups, claims, and the order of work on one machine."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import workers.app  # noqa: F401
from lab.leases.version import code_version, deploy, other_version
from lab.models import Deployment, Run, Worker
from lab.runs.claiming import claim_build
from lab.runs.workers import WorkerReport, forget_workers, report_worker, worker_left
from lab.submission.submit import submit_experiment
from lab.tests.factories import make_build, make_experiment, make_variant
from workers import beat, fleet, presence, readiness, tasks, upkeep, wakeups
from workers.app import app, broker_url, over_the_broker
from workers.errors import MachineUnfit
from workers.repeating import Timetable
from workers.run import Bench
from workers.task_rules import OneAtATime
from workers.tests.conftest import FakeLab


@pytest.fixture
def usage(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    disk = SimpleNamespace(total=100 << 30, free=50 << 30)
    monkeypatch.setattr("workers.readiness.shutil.disk_usage", lambda path: disk)
    monkeypatch.setattr("workers.readiness.settings.DISK_GIB", 0)
    return disk


def test_builds_want_five_gib_or_five_per_cent(usage: SimpleNamespace, tmp_path: Path) -> None:
    usage.free = 6 << 30
    assert readiness.short_of_disk(tmp_path, builds=True) == ""
    usage.total = 1000 << 30
    reason = readiness.short_of_disk(tmp_path, builds=True)
    wanted = "50.0 are needed: free space, expire old runs, or set KPERFLAB_DISK_GIB"
    assert reason == f"{tmp_path} has 6.0 GiB free, {wanted}"
    assert readiness.short_of_disk(tmp_path, builds=False) == ""
    usage.free = (1 << 30) - 1
    assert readiness.short_of_disk(tmp_path, builds=False)


def test_how_much_must_be_free_can_be_set(
    usage: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.readiness.settings.DISK_GIB", 0.5)
    usage.free = 1 << 30
    assert readiness.short_of_disk(tmp_path, builds=True) == ""


@pytest.mark.django_db
def test_a_worker_with_other_code_takes_nothing_and_says_so() -> None:
    assert other_version("anything") == ""
    assert deploy("aaaa")
    assert not deploy("aaaa")
    assert other_version("aaaa") == ""
    assert other_version("bbbb") == "it runs version bbbb, the lab aaaa: update it, then restart it"
    assert deploy("bbbb")
    assert other_version("bbbb") == ""
    assert Deployment.objects.count() == 2


def test_the_version_is_that_of_the_sources_alone(tmp_path: Path) -> None:
    for name in ("lab/a.py", "lab/tests/test_a.py", "lab/a.txt", "web/a.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("1")
    before = code_version(tmp_path)
    for name, same in (
        ("lab/tests/test_a.py", True),
        ("lab/a.txt", True),
        ("web/a.py", True),
        ("lab/a.py", False),
    ):
        (tmp_path / name).write_text("2")
        code_version.cache_clear()
        assert (code_version(tmp_path) == before) is same, name


def seen(**more: Any) -> WorkerReport:
    fields: dict[str, Any] = {
        "name": "host:1:2",
        "host": "host",
        "queues": ["build.x86_64.gcc"],
        "version": "a",
        "disk_free": 1,
        "disk_total": 2,
        "idle_reason": "",
    }
    return WorkerReport(**fields | more)


@pytest.mark.django_db
def test_a_worker_is_one_row_however_often_it_reports() -> None:
    report_worker(seen())
    first = Worker.objects.get()
    report_worker(seen(idle_reason="no room"))
    again = Worker.objects.get()
    assert (again.pk, again.idle_reason, again.started_at) == (first.pk, "no room", first.started_at)
    assert again.seen_at >= first.seen_at
    worker_left("host:1:2")
    assert not Worker.objects.exists()


@pytest.mark.django_db
def test_a_worker_that_was_silent_for_a_day_is_forgotten() -> None:
    report_worker(seen())
    report_worker(seen(name="host:3:4"))
    Worker.objects.filter(name="host:1:2").update(seen_at=datetime.now(UTC) - timedelta(hours=25))
    assert forget_workers() == 1
    assert Worker.objects.get().name == "host:3:4"


@pytest.mark.django_db
def test_a_worker_reports_at_its_start_and_takes_its_leave(settings: Any, tmp_path: Path) -> None:
    settings.HOME = tmp_path
    worker = presence.Presence(("target.a",), builds=False)
    worker.start()
    row = Worker.objects.get()
    assert (row.queues, row.version, row.disk_free is not None) == (["target.a"], code_version(), True)
    worker.end()
    assert not Worker.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_every_worker_takes_over_from_the_dead_where_beat_is_gone(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.HOME = tmp_path
    monkeypatch.setattr("workers.presence.REPORT_S", 0.01)
    woken: list[str] = []
    monkeypatch.setattr("workers.wakeups.wake", lambda queue, times: woken.append(queue))
    build = make_build("left")
    make_variant(make_experiment(), build=build)
    claim = claim_build(build.pk, by="host:1:2", lease_s=0.01)
    assert claim is not None
    worker = presence.Presence(("target.a",), builds=False, also=fleet.keep_going)
    worker.start()
    deadline = time.monotonic() + 60
    while build.queue not in woken and time.monotonic() < deadline:
        time.sleep(0.01)
    worker.end()
    build.refresh_from_db()
    assert (build.state, build.claimed_by) == ("queued", "")
    assert build.queue in woken


@pytest.mark.django_db(transaction=True)
def test_what_goes_wrong_beside_a_report_does_not_end_the_reports(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    settings.HOME = tmp_path
    monkeypatch.setattr("workers.presence.REPORT_S", 0.01)
    tried: list[int] = []

    def fail(_done: bool) -> None:
        tried.append(1)
        raise RuntimeError("no luck")

    worker = presence.Presence((), builds=False, also=fail)
    worker.start()
    deadline = time.monotonic() + 60
    while len(tried) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    worker.end()
    assert len(tried) >= 2
    assert "no luck" in caplog.text


def test_a_report_that_cannot_be_made_is_a_line_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(**_given: object) -> str:
        raise OSError("no database")

    monkeypatch.setattr("workers.presence.why_idle", refuse)
    presence.Presence((), builds=False)._report()
    assert "could not report: no database" in caplog.text


def test_without_redis_a_fleets_worker_says_what_to_do(settings: Any) -> None:
    settings.REDIS = ""
    with pytest.raises(MachineUnfit, match="set KPERFLAB_REDIS"):
        over_the_broker()


@pytest.mark.parametrize(
    ("redis", "celery"),
    [
        ("redis://:pw@host:6379/0", "redis://:pw@host:6379/0"),
        ("unix:///run/x/redis.sock", "redis+socket:///run/x/redis.sock?virtual_host=0"),
        ("unix://:pw@/run/x/redis.sock", "redis+socket://:pw@/run/x/redis.sock?virtual_host=0"),
    ],
)
def test_celery_has_its_own_spelling_for_sockets(redis: str, celery: str) -> None:
    assert broker_url(redis) == celery


def test_nothing_is_promised_to_celery() -> None:
    assert app.conf.accept_content == ["json"]
    assert app.conf.task_acks_late is False
    assert app.conf.worker_prefetch_multiplier == 0
    assert app.conf.task_time_limit is None
    assert app.conf.broker_connection_max_retries is None
    assert app.conf.worker_cancel_long_running_tasks_on_connection_loss is False


def test_builds_are_taken_of_every_compiler_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("gcc", "gcc-12", "gcc-ar-12", "gcc-nm", "clang-14", "clang-format-14"):
        (tmp_path / name).touch()
    monkeypatch.setattr("workers.fleet.COMPILERS", tmp_path)
    monkeypatch.setattr("workers.fleet.platform.machine", lambda: "x86_64")
    assert fleet.build_post().queues == ("build.x86_64.clang-14", "build.x86_64.gcc", "build.x86_64.gcc-12")


def test_beat_goes_on_when_the_clock_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    timetable = Timetable(*upkeep.UPKEEP, *upkeep.FLEET)
    sent: list[object] = []
    timetable.do_due(sent.append)
    assert sent == [task for task, _ in (*upkeep.UPKEEP, *upkeep.FLEET)], "all of it is due at the start"
    sent.clear()
    # The wall clock goes back by a day; time goes on.
    real, passed = time.time, time.monotonic
    monkeypatch.setattr("time.time", lambda: real() - 86400)
    monkeypatch.setattr("workers.repeating.monotonic", lambda: passed() + 1.5)
    timetable.do_due(sent.append)
    assert sent == [task for task, _ in upkeep.FLEET]


def test_a_broker_that_is_away_costs_beat_one_turn(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(queue: str) -> int:
        raise ConnectionError("refused")

    monkeypatch.setattr("workers.beat.depth", refuse)
    beat.send(tasks.return_dead)
    assert "could not be sent: refused" in caplog.text


def test_upkeep_that_is_still_at_it_is_not_begun_beside_itself() -> None:
    done: list[str] = []

    @app.task(base=OneAtATime, name="once")
    def once(deep: bool) -> None:
        done.append("begun")
        if deep:
            once(False)

    once(True)
    assert done == ["begun"]
    once(False)
    assert done == ["begun", "begun"]


@pytest.mark.process
@pytest.mark.django_db(transaction=True)
def test_wake_ups_carry_an_experiment_to_its_end(fake_lab: FakeLab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.loop.make_bench", lambda home: _bench(fake_lab))
    monkeypatch.setattr("workers.loop.why_idle", lambda builds: "")
    # Each message reaches its worker at once.
    monkeypatch.setitem(app.conf, "task_always_eager", True)
    monkeypatch.setattr("workers.wakeups.depth", lambda queue: 0)
    patch = fake_lab.diff("fs/inode.c", "i_ino == ino", "i_ino == ino + 1")
    experiment = submit_experiment(spec=fake_lab.spec({"p": patch}), on_progress=lambda line: None)
    for _ in range(20):
        wakeups.dispatch()
        tasks.settle_experiments()
        experiment.refresh_from_db()
        if experiment.state == "done":
            break
    assert experiment.state == "done"
    assert set(Run.objects.values_list("state", flat=True)) == {"done"}


@pytest.mark.django_db
def test_whoever_has_a_reason_takes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.loop.why_idle", lambda builds: "no room")

    def never(**_given: object) -> None:
        raise AssertionError("claimed")

    monkeypatch.setattr("workers.loop.claim_next_build", never)
    monkeypatch.setattr("workers.loop.claim_next_run", never)
    wakeups.build_next("build.x86_64.gcc")
    wakeups.boot_next("guest")


def test_a_queue_gets_no_second_wake_up(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, ...]] = []
    monkeypatch.setattr("workers.wakeups.depth", lambda queue: int(queue == "target.busy"))
    monkeypatch.setattr(
        wakeups.boot_next, "apply_async", lambda arguments, queue: sent.append((*arguments, queue))
    )
    monkeypatch.setattr(
        wakeups.build_next, "apply_async", lambda arguments, queue: sent.append((*arguments, queue))
    )
    for queue in ("target.busy", "target.a.b", "build.x86_64.gcc"):
        wakeups.wake(queue)
    assert sent == [("a.b", "target.a.b"), ("build.x86_64.gcc", "build.x86_64.gcc")]
    wakeups.wake("target.busy", 3)
    assert sent[2:] == [("busy", "target.busy")] * 2


def _bench(lab: FakeLab) -> Any:
    return Bench(lab.home, {"libvirt": lab.driver})
