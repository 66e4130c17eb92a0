# SPDX-License-Identifier: GPL-2.0-or-later
"""The reason shown for an experiment that is not being worked on."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from lab.models import Experiment, Target, Worker
from lab.runs.claiming import claim_next_build
from lab.runs.queues import GONE_S, target_queue
from lab.runs.why_waiting import wait_of
from lab.tests.factories import finish_builds, make_grid

pytestmark = pytest.mark.django_db


@pytest.fixture
def experiment() -> Experiment:
    return make_grid(blocks=1)


def queue_of(experiment: Experiment) -> str:
    build = experiment.variants.select_related("build").first().build  # type: ignore[union-attr]
    assert build is not None
    return build.queue


def worker(*queues: str, **more: object) -> Worker:
    return Worker.objects.create(
        name=f"box:{Worker.objects.count()}:1", host="box", queues=list(queues), **more
    )


def said(experiment: Experiment, *, operator: bool = False) -> tuple[str, bool]:
    wait = wait_of(experiment.pk, operator=operator)
    assert wait is not None
    return wait.why, wait.forsaken


def test_a_queue_that_nobody_takes_from_is_named(experiment: Experiment) -> None:
    worker("build.sparc.gcc-2")
    worker(queue_of(experiment), seen_at=timezone.now() - timedelta(seconds=GONE_S + 5))
    why, forsaken = said(experiment)
    assert f"no worker takes from “{queue_of(experiment)}”" in why
    assert forsaken


def test_operators_are_told_which_worker_takes_nothing_and_why(experiment: Experiment) -> None:
    worker(queue_of(experiment), idle_reason="/var/lib/lab has 0.1 GiB free")
    told = "It waits: box takes nothing now, /var/lib/lab has 0.1 GiB free."
    assert said(experiment, operator=True) == (told, False)


def test_others_are_told_neither_the_machine_nor_its_paths(experiment: Experiment) -> None:
    worker(queue_of(experiment), idle_reason="/var/lib/lab has 0.1 GiB free")
    told = "It waits: its worker takes nothing at the moment; operators see why on /lab/."
    assert said(experiment) == (told, False)
    worker(queue_of(experiment), idle_reason="/var/lib/lab has 0.1 GiB free")
    told = "It waits: its workers take nothing at the moment; operators see why on /lab/."
    assert said(experiment) == (told, False)


def test_with_a_worker_it_waits_for_its_turn_until_it_is_worked_on(experiment: Experiment) -> None:
    worker(queue_of(experiment))
    assert said(experiment) == ("It waits for its turn.", False)
    assert claim_next_build(queue=queue_of(experiment), by="box:1:1") is not None
    assert wait_of(experiment.pk, operator=False) is None


def test_boots_wait_for_whoever_boots_their_target(experiment: Experiment) -> None:
    finish_builds(experiment)
    queue = target_queue(experiment.target.name)
    assert f"no worker takes from “{queue}”" in said(experiment)[0]
    worker(queue)
    assert said(experiment) == ("It waits for its turn.", False)


def test_a_target_in_quarantine_is_what_it_waits_for(experiment: Experiment) -> None:
    finish_builds(experiment)
    worker(target_queue(experiment.target.name))
    Target.objects.update(quarantined_at=timezone.now(), quarantine_reason="three faults")
    assert "is in quarantine: three faults" in said(experiment)[0]
