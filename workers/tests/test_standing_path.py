# SPDX-License-Identifier: GPL-2.0-or-later
"""From a push to a mail: a branch moves, the worker measures it, a step becomes an alert, a hook hears of all of it."""

from __future__ import annotations

from typing import Any

import pytest
from django.core import mail

from lab.hooks.changes import HookFields, make_hook
from lab.models import Alert, Build, Delivery, Experiment, Standing, User
from lab.standing.changes import StandingFields, make_standing, take_push
from lab.tests.factories import make_user
from lab.tests.receiver import receiving
from workers import tasks, upkeep, work
from workers.tests.conftest import FakeLab, opens
from workers.tests.test_bisection import line
from workers.tests.test_work import StopsWhen

pytestmark = pytest.mark.process

__all__ = ["line"]  # a fixture
SECRET = "a secret of enough characters"


def test_a_push_is_measured_and_a_step_is_told(
    fake_lab: FakeLab, line: list[str], settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.HOOKS_PRIVATE = True
    # Every turn of the loop does everything, so that no time has to pass.
    monkeypatch.setattr(work, "UPKEEP", tuple((task, 0.0) for task, _ in upkeep.UPKEEP))

    def script(request: Any) -> object:
        slow = line.index(Build.objects.get(release=request.release).commit) >= 5
        return opens((1250.0 if slow else 1000.0) + len(fake_lab.driver.requests) % 3)

    fake_lab.scripts[""] = script  # type: ignore[assignment]
    charlie = make_user("charlie", User.Role.OPERATOR)
    spec = fake_lab.spec({}, measure={"boots": 2, "iterations": 2, "warmup": 1}).model_dump(mode="json")
    fields = StandingFields("nightly", spec, "watched", secret=SECRET, mail_to=["ann@example.org"])
    make_standing(by=charlie, fields=fields)
    with receiving() as receiver:
        make_hook(by=charlie, fields=HookFields("ci", receiver.url))
        for commit in line:
            fake_lab.kernel._git("branch", "--force", "watched", commit)
            assert take_push(name="nightly", headers={"X-Gitlab-Token": SECRET}, body=b"")
            work.work(StopsWhen(lambda: False, turns=2))
            assert Standing.objects.get().last_commit == commit
            tasks.deliver_events()
    experiments = Experiment.objects.order_by("pk")
    assert [experiment.base_commit for experiment in experiments] == line
    # The third does not compile: a failed experiment, no alert, and nobody is to blame but the kernel.
    assert [experiment.state for experiment in experiments].count("done") == len(line) - 1
    alert = Alert.objects.get()
    assert (alert.commit, alert.worse) == (line[5], True)
    assert [sent.to for sent in mail.outbox] == [["ann@example.org"]]
    events = [got.headers["kperflab-event"] for got in receiver.got]
    assert events.count("experiment.queued") == len(line)
    assert events.count("experiment.done") == len(line) - 1
    assert events.count("experiment.failed") == 1
    assert events.count("alert") == 1
    assert not Delivery.objects.exclude(state="delivered").exists()
