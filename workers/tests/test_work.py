# SPDX-License-Identifier: GPL-2.0-or-later
"""The worker's loop: queued work is done, interrupted work is given back, faults are reported."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from lab.hooks.changes import HookFields, make_hook, try_hook
from lab.models import Build, Delivery, Experiment, Run
from lab.models.states import RunState
from lab.runs.order import next_run
from lab.submission.submit import submit_experiment
from lab.tests.factories import claim_run, make_user
from lab.tests.receiver import receiving
from lab.tests.template_database import begin_with_template
from workers import local, work
from workers.drivers.fake import Script
from workers.errors import MachineUnfit
from workers.tests.conftest import FakeLab, opens
from workers.tests.machines import await_true

pytestmark = pytest.mark.process


class StopsWhen(Event):
    """A stop that comes as soon as something holds, or after so many idle turns."""

    def __init__(self, holds: Callable[[], bool], turns: int = 20) -> None:
        super().__init__()
        self.holds, self.turns = holds, turns

    def is_set(self) -> bool:
        return self.holds() or self.turns <= 0

    def wait(self, timeout: float | None = None) -> bool:
        self.turns -= 1
        return self.is_set()


def over(experiment: Experiment) -> Callable[[], bool]:
    return lambda: Experiment.objects.get(pk=experiment.pk).state in {"done", "failed"}


@pytest.fixture
def queued(fake_lab: FakeLab) -> Experiment:
    return submit_experiment(spec=fake_lab.spec({}), home=fake_lab.home)


def test_what_is_queued_is_built_booted_and_compared(
    queued: Experiment, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        work.work(StopsWhen(over(queued)))
    assert Experiment.objects.get(pk=queued.pk).state == "done"
    assert Run.objects.filter(state="done").count() == 6
    said = [record.getMessage() for record in caplog.records if record.name == "workers.loop"]
    assert any(line.startswith("build ") and line.endswith(": built") for line in said)
    assert sum(": finished" in line for line in said) == 6
    assert said[-1].endswith(f"; experiment {queued.pk} is done")


def test_every_kernel_is_built_before_the_first_boot(fake_lab: FakeLab) -> None:
    patch = fake_lab.diff("fs/inode.c", "\tWARN_HERE();\n", "")
    experiment = submit_experiment(spec=fake_lab.spec({"p": patch}), home=fake_lab.home)
    states: list[set[str]] = []

    def script(_request: object) -> Script:
        states.append(set(Build.objects.values_list("state", flat=True)))
        return opens(1000.0)

    fake_lab.scripts[""] = fake_lab.scripts["p"] = script
    work.work(StopsWhen(over(experiment)))
    assert states
    assert all(snapshot == {"built"} for snapshot in states)


def test_what_a_dead_process_had_claimed_is_taken_up(queued: Experiment) -> None:
    work.work(StopsWhen(lambda: next_run() is not None))
    run = next_run()
    assert run is not None
    assert claim_run(run, by=f"{socket.gethostname()}:4194305:1") is not None
    work.work(StopsWhen(over(queued)))
    assert Run.objects.filter(state="done").count() == 6


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_gives_the_boot_back(
    interrupt: type[BaseException], fake_lab: FakeLab, queued: Experiment
) -> None:
    def script(_request: object) -> Script:
        raise interrupt

    fake_lab.scripts[""] = script
    with pytest.raises(interrupt):
        work.work(StopsWhen(over(queued)))
    assert not Run.objects.exclude(state=RunState.QUEUED).exists()
    assert set(Run.objects.values_list("claimed_by", "attempt")) == {("", 0)}


def test_a_target_that_boots_for_another_process_is_waited_for(queued: Experiment, fake_lab: FakeLab) -> None:
    work.work(StopsWhen(lambda: next_run() is not None))
    run = next_run()
    assert run is not None
    # Of another host, so that nobody here can tell that it is gone.
    assert claim_run(run, by="elsewhere:1:1") is not None
    waits = StopsWhen(lambda: False, turns=3)
    work.work(waits)
    assert waits.turns == 0
    assert fake_lab.driver.requests == []


def test_an_experiment_that_somebody_was_killed_before_ending_is_ended(
    queued: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lab.runs.record.settle", lambda experiment_id: False)
    work.work(StopsWhen(lambda: not Run.objects.exclude(state="done").exists()))
    assert Experiment.objects.get(pk=queued.pk).state == "running"
    work.work(StopsWhen(over(queued)))
    assert Experiment.objects.get(pk=queued.pk).state == "done"


def test_a_database_that_does_not_answer_does_not_end_the_worker(
    queued: Experiment, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    answers = iter([OSError("no database")])

    def fails_once(_scope: object) -> bool:
        if fault := next(answers, None):
            raise fault
        return False

    monkeypatch.setattr("workers.work.take_one", fails_once)
    closed: list[int] = []
    monkeypatch.setattr("workers.work.close_old_connections", lambda: closed.append(1))
    work.work(StopsWhen(lambda: False, turns=2))
    assert "it tries again" in caplog.text
    assert closed == [1]


def test_a_chore_that_fails_keeps_nothing_else_from_its_turn(
    queued: Experiment, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails() -> None:
        raise ValueError("a row that nobody foresaw")

    later: list[int] = []
    monkeypatch.setattr("workers.work.close_old_connections", lambda: None)
    monkeypatch.setattr("workers.work.UPKEEP", ((fails, 0.0), (lambda: later.append(1), 0.0)))
    work.work(StopsWhen(over(queued)))
    assert Experiment.objects.get(pk=queued.pk).state == "done"
    assert later
    assert "a row that nobody foresaw" in caplog.text


def test_a_machine_has_one_worker(tmp_path: Path) -> None:
    with (
        work.only_worker(tmp_path),
        pytest.raises(MachineUnfit, match="already works"),
        work.only_worker(tmp_path),
    ):
        pass
    with work.only_worker(tmp_path):
        pass


def test_an_experiment_worked_on_elsewhere_is_waited_for(
    queued: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`labctl run` beside a worker: the worker has the last boot, then it is recorded."""
    work.work(StopsWhen(lambda: Run.objects.exclude(state="done").count() == 1))
    (last,) = Run.objects.exclude(state="done")
    assert claim_run(last.pk, by="elsewhere:1:1") is not None

    def other_ends(_seconds: float) -> None:
        Run.objects.filter(pk=last.pk).update(state="done", token="")

    monkeypatch.setattr("workers.local.sleep", other_ends)
    local.work_through(queued.pk)
    assert Experiment.objects.get(pk=queued.pk).state == "done"


@pytest.mark.django_db(transaction=True)
def test_hooks_are_told_while_something_else_goes_on(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.HOOKS_PRIVATE = True
    monkeypatch.setattr(work, "DELIVER_S", 0.02)
    alice = make_user("alice")
    with receiving() as receiver:
        hook = make_hook(by=alice, fields=HookFields("ours", receiver.url))
        with work.delivering():
            try_hook(hook_id=hook.pk, by=alice)
            await_true(lambda: bool(receiver.got), "the hook is called")
    assert [got.headers["kperflab-event"] for got in receiver.got] == ["test"]
    assert Delivery.objects.get().state == "delivered"


def test_sigterm_ends_the_command_at_once_and_in_order(tmp_path: Path) -> None:
    code = (
        "import workers.app; from workers import labctl, local; local.sweep = list;"
        "import sys; sys.argv = ['labctl', 'work', '--local']; labctl.main()"
    )
    begin_with_template(tmp_path)
    environment = os.environ | {"KPERFLAB_HOME": str(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        first = process.stderr.readline()
        assert "working on" in first
        process.send_signal(signal.SIGTERM)
        _, rest = process.communicate(timeout=20)
    finally:
        process.kill()
    assert "stopped; nothing is lost" in rest
    assert process.returncode == 0
