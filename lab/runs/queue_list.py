# SPDX-License-Identifier: GPL-2.0-or-later
"""Read the length of each queue, how long its work has been waiting, and which workers take from it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Count, Min
from django.utils import timezone

from lab.models import Build
from lab.models.states import OPEN_EXPERIMENT, BuildState
from lab.runs.queues import target_queue
from lab.runs.workers import ReportedWorker
from lab.targets.fleet import Fleet
from lab.targets.health_checks import due_checks


@dataclass(frozen=True, slots=True)
class QueueLine:
    """One queue. oldest_s: the age of its oldest item since it became ready; workers: its live workers."""

    name: str
    waiting: int
    running: int
    oldest_s: float
    workers: tuple[str, ...]
    paused: tuple[str, ...]

    @property
    def forsaken(self) -> bool:
        """Return whether work is waiting and no worker takes it."""
        return bool(self.waiting) and not self.workers


@dataclass(slots=True)
class _Waiting:
    """Work of a queue that is ready. oldest_s: since its oldest item became ready."""

    number: int
    oldest_s: float


def queue_lines(workers: Sequence[ReportedWorker], fleet: Fleet) -> tuple[QueueLine, ...]:
    """Return every queue with waiting work, with a worker, or of a target, by name. workers: all that reported."""
    takers, paused = _takers(workers)
    # Queued boots come first: checks are for machines that have nothing else to do.
    checks = {target_queue(name): _Waiting(1, 0.0) for name in due_checks()}
    waiting = {**checks, **_builds_waiting(), **_boots_waiting(fleet)}
    running = _builds_running() | {
        target_queue(target.name): fleet.running.get(target.id, 0) for target in fleet.targets
    }
    none = _Waiting(0, 0.0)
    return tuple(
        QueueLine(
            name=name,
            waiting=waiting.get(name, none).number,
            running=running.get(name, 0),
            oldest_s=waiting.get(name, none).oldest_s,
            workers=tuple(takers.get(name, ())),
            paused=tuple(paused.get(name, ())),
        )
        for name in sorted({*waiting, *takers, *paused, *running})
        # Workers also listen to the queue of upkeep, which has no rows in the tables.
        if name.startswith(("build.", "target."))
    )


def _takers(workers: Sequence[ReportedWorker]) -> tuple[Mapping[str, list[str]], Mapping[str, list[str]]]:
    """Return by queue the names of its live workers: those that take from it, and those that are paused."""
    takers, paused = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for worker in workers:
        if not worker.gone:
            for queue in worker.queues:
                (paused if worker.idle_reason else takers)[queue].append(worker.name)
    return takers, paused


def _builds_waiting() -> dict[str, _Waiting]:
    """Return by queue the builds that open experiments wait for."""
    now = timezone.now()
    wanted = Build.objects.filter(
        state=BuildState.QUEUED, variants__experiment__state__in=OPEN_EXPERIMENT
    ).order_by()
    rows = wanted.values_list("queue").annotate(number=Count("pk", distinct=True), since=Min("created_at"))
    return {queue: _Waiting(number, max(0.0, (now - since).total_seconds())) for queue, number, since in rows}


def _builds_running() -> dict[str, int]:
    builds = Build.objects.filter(state=BuildState.BUILDING).order_by().values_list("queue")
    return dict(builds.annotate(number=Count("pk")))


def _boots_waiting(fleet: Fleet) -> dict[str, _Waiting]:
    """Return by queue the boots that could be taken now; one of a group that has begun no block waits for each target of the group."""
    names = {target.id: target.name for target in fleet.targets}
    by_group = defaultdict[str, list[str]](list)
    for target in fleet.targets:
        by_group[target.group].append(target.name)
    waiting: dict[str, _Waiting] = {}
    for boots in fleet.waiting:
        if not boots.ready or boots.ready_s is None:
            continue
        if boots.group and boots.target is None:
            places = by_group[boots.group]
        else:
            # A target may be added between the two readings.
            own = names.get(boots.target or boots.asked)
            places = [own] if own else []
        for name in places:
            line = waiting.setdefault(target_queue(name), _Waiting(0, 0.0))
            line.number += boots.ready
            line.oldest_s = max(line.oldest_s, boots.ready_s)
    return waiting
