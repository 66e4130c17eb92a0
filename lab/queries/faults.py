# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads about what went wrong by the lab's own fault, and about answers that came too late."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from lab.models import Build, LateAnswer, Run

LATELY = timedelta(days=7)
SHOWN = 20


@dataclass(frozen=True, slots=True)
class FaultLine:
    """One build or boot that the lab is to blame for; again: it was queued once more. place: its target or queue."""

    kind: str
    id: int
    label: str
    place: str
    problem: str
    at: datetime | None
    again: bool


@dataclass(frozen=True, slots=True)
class LateLine:
    """One answer that was not written, since its claim was not held any more."""

    kind: str
    id: int
    worker: str
    said: str
    why: str
    at: datetime


def lab_faults() -> tuple[FaultLine, ...]:
    """The newest of the last week."""
    since = timezone.now() - LATELY
    builds = Build.objects.filter(blame="lab", finished_at__gte=since).order_by("-finished_at")
    runs = Run.objects.filter(blame="lab", finished_at__gte=since).order_by("-finished_at")
    shown = runs.select_related("target", "experiment__target", "variant")
    found = [
        FaultLine(
            "build", one.pk, one.commit[:12], one.queue, one.problem, one.finished_at, one.state != "failed"
        )
        for one in builds.defer("request", "problem_detail")[:SHOWN]
    ]
    found += [
        FaultLine(
            "run",
            one.pk,
            f"{one.experiment.name}: {one.variant.name}",
            (one.target or one.experiment.target).name,
            one.problem,
            one.finished_at,
            one.state != "failed",
        )
        for one in shown.defer("environment", "extras", "problem_detail", "experiment__spec")[:SHOWN]
    ]
    found.sort(key=lambda one: one.at or since, reverse=True)
    return tuple(found[:SHOWN])


def late_answers() -> tuple[LateLine, ...]:
    """The newest answers that were refused."""
    rows = LateAnswer.objects.order_by("-pk")[:SHOWN]
    return tuple(LateLine(one.kind, one.work, one.worker, one.said, one.why, one.at) for one in rows)
