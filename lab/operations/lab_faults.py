# SPDX-License-Identifier: GPL-2.0-or-later
"""Read faults of the lab itself: failed work, late answers, corrupt artifacts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Max, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone

from lab.models import Build, Experiment, LateAnswer, Run, Variant
from lab.models.states import BuildState, RunState

LATELY = timedelta(days=7)
SHOWN = 20


@dataclass(frozen=True, slots=True)
class FaultLine:
    """One build or boot that failed by the lab's fault; again: it was queued once more. place: its target or queue."""

    kind: str
    id: int
    label: str
    place: str
    problem: str
    at: datetime | None
    again: bool


@dataclass(frozen=True, slots=True)
class LateLine:
    """One answer that was not written because its claim had expired. place: its target or queue.

    experiment: its number and name, None where it was deleted with its work; of a build the newest that uses it.
    """

    kind: str
    id: int
    experiment: tuple[int, str] | None
    place: str
    worker: str
    result: str
    why: str
    at: datetime


def lab_faults() -> tuple[FaultLine, ...]:
    """Return the newest faults of the last week."""
    since = timezone.now() - LATELY
    builds = Build.objects.filter(blame="lab", finished_at__gte=since).order_by("-finished_at", "-pk")
    runs = Run.objects.filter(blame="lab", finished_at__gte=since).order_by("-finished_at", "-pk")
    place = Coalesce("target__name", "experiment__target__name")
    faults = [
        FaultLine("build", pk, commit[:12], queue, problem, at, state != BuildState.FAILED)
        for pk, commit, queue, problem, at, state in builds.values_list(
            "pk", "commit", "queue", "problem", "finished_at", "state"
        )[:SHOWN]
    ]
    faults += [
        FaultLine("run", pk, f"{experiment}: {variant}", target, problem, at, state != RunState.FAILED)
        for pk, experiment, variant, problem, at, state, target in runs.values_list(
            "pk", "experiment__name", "variant__name", "problem", "finished_at", "state", place
        )[:SHOWN]
    ]
    faults.sort(key=lambda fault: fault.at or since, reverse=True)
    return tuple(faults[:SHOWN])


def late_answers() -> tuple[LateLine, ...]:
    """The newest answers that were refused."""
    rows = list(LateAnswer.objects.order_by("-pk")[:SHOWN])
    asked = experiments_of((row.kind, row.work) for row in rows)
    names = dict(Experiment.objects.filter(pk__in=asked.values()).values_list("pk", "name"))
    queues = dict(
        Build.objects.filter(pk__in=[row.work for row in rows if row.kind == "build"]).values_list(
            "pk", "queue"
        )
    )
    lines = []
    for row in rows:
        number = asked.get((row.kind, row.work))
        experiment = None if number is None else (number, names.get(number, ""))
        place = queues.get(row.work, "") if row.kind == "build" else row.target
        lines.append(LateLine(row.kind, row.work, experiment, place, row.worker, row.said, row.why, row.at))
    return tuple(lines)


def experiments_of(works: Iterable[tuple[str, int]]) -> Mapping[tuple[str, int], int]:
    """Return the experiments of builds and runs, by kind and number; of a build, the newest that uses it. Two queries."""
    distinct = set(works)
    runs = Run.objects.filter(pk__in=[work for kind, work in distinct if kind == "run"])
    users = Variant.objects.filter(build__in=[work for kind, work in distinct if kind == "build"]).order_by()
    newest = users.values_list("build").annotate(newest=Max("experiment"))
    experiments = {("run", work): number for work, number in runs.values_list("pk", "experiment")}
    return experiments | {("build", work): number for work, number in newest}


def corrupt_artifacts() -> tuple[Build, ...]:
    """Return the builds with a changed artifact, the newest first."""
    rows = Build.objects.filter(corrupted__gt=0).order_by("-pk")
    return tuple(rows.only("release", "commit", "state", "corrupted")[:SHOWN])


def corrupt_artifacts_ever() -> int:
    """Return how often a changed artifact was found."""
    return Build.objects.filter(corrupted__gt=0).aggregate(times=Sum("corrupted"))["times"] or 0
