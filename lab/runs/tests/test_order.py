# SPDX-License-Identifier: GPL-2.0-or-later
"""The order of work: priority, then fair share between submitters, then age; and who may ask for which priority."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from lab.conftest import Describe
from lab.errors import SubmissionRejected
from lab.experiments.priority import priority_asked
from lab.experiments.spec import spec_digest
from lab.models import Experiment, Run, Target, User
from lab.runs.claiming import claim_next_build
from lab.runs.order import next_build, next_run
from lab.runs.queue_list import queue_lines
from lab.targets.fleet import read_fleet
from lab.tests.factories import ME, finish_builds, make_build, make_grid, make_user, make_variant

pytestmark = pytest.mark.django_db


def grid(submitter: User | None, **fields: object) -> Experiment:
    experiment = make_grid()
    Experiment.objects.filter(pk=experiment.pk).update(submitter=submitter, **fields)
    finish_builds(experiment)
    return experiment


def next_of() -> int:
    run_id = next_run(target="guest")
    assert run_id is not None
    return Run.objects.get(pk=run_id).experiment_id


def test_the_higher_priority_goes_first_then_the_older() -> None:
    low, first, second, high = (grid(None, priority=number) for number in (-10, 0, 0, 10))
    order = []
    for _ in range(4):
        order.append(next_of())
        Experiment.objects.filter(pk=order[-1]).update(state="done")
    assert order == [high.pk, first.pk, second.pk, low.pk]


def test_who_used_the_lab_least_lately_goes_first() -> None:
    alice, bob = make_user("alice"), make_user("bob")
    older, younger = grid(alice), grid(bob)
    assert next_of() == older.pk
    now = timezone.now()
    spent = older.runs.first()
    assert spent
    Run.objects.filter(pk=spent.pk).update(
        state="done", started_at=now - timedelta(minutes=3), finished_at=now - timedelta(minutes=1)
    )
    assert next_of() == younger.pk
    # What was long ago is forgotten.
    Run.objects.filter(pk=spent.pk).update(finished_at=now - timedelta(hours=3))
    assert next_of() == older.pk


def test_who_boots_elsewhere_now_has_used_the_lab_too() -> None:
    alice, bob = make_user("alice"), make_user("bob")
    older, younger = grid(alice), grid(bob)
    other = Target.objects.create(name="other")
    busy = older.runs.first()
    assert busy
    Run.objects.filter(pk=busy.pk).update(state="running", target=other, token="t", started_at=timezone.now())
    assert next_of() == younger.pk


def test_builds_are_shared_fairly_between_submitters_and_kept_apart_by_queue() -> None:
    alice, bob = make_user("alice"), make_user("bob")
    first, second = make_grid(), make_grid()
    Experiment.objects.filter(pk=first.pk).update(submitter=alice)
    Experiment.objects.filter(pk=second.pk).update(submitter=bob)
    other = make_variant(first, "clang", build=make_build("clang", queue="build.x86_64.clang"))
    taken = [claim_next_build(queue="build.x86_64.gcc", by=ME) for _ in range(2)]
    owners = [
        set(Experiment.objects.filter(variants__build=claim.id).values_list("pk", flat=True))
        for claim in taken
        if claim
    ]
    assert owners == [{first.pk}, {second.pk}]
    assert next_build(queue="build.x86_64.clang") == other.build_id
    lines = {line.name: (line.waiting, line.running) for line in queue_lines((), read_fleet())}
    assert {name: line for name, line in lines.items() if name.startswith("build.")} == {
        "build.x86_64.clang": (1, 0),
        "build.x86_64.gcc": (2, 2),
    }


@pytest.mark.process
def test_a_priority_above_normal_is_for_operators_and_no_part_of_the_digest(describe: Describe) -> None:
    urgent = describe(priority="high")
    assert spec_digest(urgent) == spec_digest(describe())
    with pytest.raises(SubmissionRejected, match="only operators") as refused:
        priority_asked(urgent.priority, make_user("alice"))
    assert refused.value.place == "priority"
    assert priority_asked("low", make_user("bob")) == -10
    assert priority_asked("high", make_user("boss", User.Role.OPERATOR)) == 10
    assert priority_asked("high", None) == 10
