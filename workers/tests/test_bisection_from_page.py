# SPDX-License-Identifier: GPL-2.0-or-later
"""A bisection that a button of the Trends page starts, carried out by the upkeep and the worker loop."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from kernels.trees import history
from kernels.trees.tree import resolve
from lab.bisections.from_trend import advance_bisections
from lab.bisections.start import start_bisection
from lab.errors import SubmissionRejected
from lab.models import Bisection, BisectionStep, Build, Experiment, Target
from lab.submission.tree_history import open_named, remember
from lab.tests.factories import make_user
from lab.trends.page import trend_list
from workers import bisection, work
from workers.ctl.trendctl import _step_of
from workers.tests.conftest import FakeLab, opens
from workers.tests.test_bisection import SILENT, line
from workers.tests.test_work import StopsWhen

pytestmark = pytest.mark.process

__all__ = ["line"]  # a fixture
MOST_TURNS = 20


@pytest.fixture
def pick(fake_lab: FakeLab, line: list[str]) -> str:
    """The pick of a step between the second commit and the fifth, which caused it."""

    def script(request: Any) -> object:
        slow = line.index(Build.objects.get(release=request.release).commit) >= 5
        return opens((1250.0 if slow else 1000.0) + len(fake_lab.driver.requests) % 3)

    fake_lab.scripts[""] = script  # type: ignore[assignment]
    measure = {"boots": 2, "iterations": 2, "warmup": 1}
    for commit in (line[0], line[1], line[2], line[5], line[6], line[7]):
        fake_lab.run(fake_lab.spec({}, base=commit, name=f"at {commit[:12]}", measure=measure))
    # As a fetch notes the commits of a branch between two measured ones.
    row, tree = open_named(fake_lab.spec({}), fake_lab.home, lambda _: None)
    remember(row, history.line(tree, resolve(tree, line[0]), resolve(tree, line[7])))
    key = next(page.line.key for page in trend_list() if page.steps)
    return f"{key}:{line[5]}"


def test_the_button_finds_the_commit_and_its_experiments_belong_to_who_pressed(
    fake_lab: FakeLab, line: list[str], pick: str, client: Client
) -> None:
    before = Experiment.objects.count()
    ann = make_user("ann")
    client.force_login(ann)
    text = client.post("/trends/steps", {"bisect": pick}, follow=True).content.decode()
    assert "searches 3 commits" in text
    row = Bisection.objects.get()
    assert row.line == line[2:6]
    # The command joins the same bisection instead of beginning another.
    assert start_bisection(asked=_step_of(pick.partition(":")[0], 0, 80)).pk == row.pk
    for _ in range(MOST_TURNS):
        advance_bisections(fake_lab.home)
        work.work(StopsWhen(lambda: False, turns=1))
        row.refresh_from_db()
        if row.state != "running":
            break
    steps = [(step.revision, step.outcome, step.reason) for step in BisectionStep.objects.all()]
    assert (row.state, row.answer, row.suspects) == ("done", "commit", [line[5]]), steps
    submitted = Experiment.objects.order_by("pk")[before:]
    assert [experiment.submitter for experiment in submitted] == [ann] * len(steps)
    assert advance_bisections(fake_lab.home) == []


def test_while_the_target_is_disabled_no_revision_is_skipped(
    fake_lab: FakeLab, line: list[str], pick: str, client: Client
) -> None:
    client.force_login(make_user("ann"))
    client.post("/trends/steps", {"bisect": pick})
    Target.objects.update(enabled=False)
    assert 'waits: target: there is no target "guest"' in advance_bisections(fake_lab.home)[0]
    step = BisectionStep.objects.get()
    assert step.outcome == ""
    with pytest.raises(SubmissionRejected, match="there is no target"):
        bisection.work_on(step, SILENT)
    Target.objects.update(enabled=True)
    assert "queued" in advance_bisections(fake_lab.home)[0]
