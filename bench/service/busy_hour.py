# SPDX-License-Identifier: GPL-2.0-or-later
"""A last hour of 2,000 boots and 200 builds on 16 targets, 16 boots that run, 320 that wait and 20 workers."""

import random
from datetime import timedelta

from django.db import connection
from django.utils import timezone

from lab.models import Build, Run, Target, Worker
from lab.models.states import RunState
from lab.tests.factories import finish_builds, make_grid

TARGETS, BOOTS, BUILDS, WORKERS = 16, 2000, 200, 20


def make_busy() -> None:
    """Move the newest boots and builds into the last hour, and give every target open work."""
    draw, now = random.Random(1), timezone.now()
    targets = [Target.objects.create(name=f"t{number}") for number in range(TARGETS)]
    runs, builds = list(Run.objects.order_by("-pk")[:BOOTS]), list(Build.objects.order_by("-pk")[:BUILDS])
    rows: list[Run | Build] = [*runs, *builds]
    for row in rows:
        row.finished_at = now - timedelta(minutes=draw.uniform(1, 50))
        row.started_at = row.finished_at - timedelta(seconds=draw.uniform(5, 60))
    for run in runs:
        run.target, run.steps = draw.choice(targets), {"boot": 2.0, "workload": 9.0, "collect": 0.4}
    Run.objects.bulk_update(runs, ["started_at", "finished_at", "target", "steps"], batch_size=500)
    Build.objects.bulk_update(builds, ["started_at", "finished_at"], batch_size=500)
    for target in targets:
        _give_work(target)
    Worker.objects.bulk_create(
        Worker(name=f"h{number}:1:1", host=f"h{number}", queues=[f"target.t{number % TARGETS}"])
        for number in range(WORKERS)
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def _give_work(target: Target) -> None:
    experiment, now = make_grid(blocks=11), timezone.now()
    type(experiment)._default_manager.filter(pk=experiment.pk).update(target=target, state="running")
    finish_builds(experiment)
    first = experiment.runs.order_by("position")[0]
    Run.objects.filter(pk=first.pk).update(
        state=RunState.RUNNING, target=target, started_at=now, lease_until=now + timedelta(seconds=15)
    )
