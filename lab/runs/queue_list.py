# SPDX-License-Identifier: GPL-2.0-or-later
"""Read the length of each queue, how long its work has been waiting, and which workers take from it."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Count, Min
from django.utils import timezone

from lab.models import Build, Run, Target
from lab.models.states import OPEN_EXPERIMENT, BuildState, RunState
from lab.runs.queues import target_queue, waiting_queues
from lab.runs.workers import ReportedWorker, reported_workers
from lab.targets.waiting_boots import WaitingBoots, waiting_boots

# The queue and the group of each target, by its key.
Targets = Mapping[int, tuple[str, str]]


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


def queue_lines(
    workers: Sequence[ReportedWorker] | None = None, waiting: Sequence[WaitingBoots] | None = None
) -> tuple[QueueLine, ...]:
    """Return every queue with waiting work, with a worker, or of a target, by name.

    workers, waiting: all workers, and the boots that wait, where they are known.
    """
    boots = waiting_boots() if waiting is None else waiting
    takers, paused = _takers(reported_workers() if workers is None else workers)
    targets = {
        pk: (target_queue(name), group)
        for pk, name, group in Target.objects.values_list("pk", "name", "group")
    }
    waits = waiting_queues(boots, paused.keys() - takers.keys())
    oldest, running = _oldest(boots, targets), _running(targets)
    names = {*waits, *takers, *paused, *running, *(queue for queue, _ in targets.values())}
    return tuple(
        QueueLine(
            name=name,
            waiting=waits[name].waiting if name in waits else 0,
            running=running.get(name, 0),
            oldest_s=max(0.0, oldest.get(name, 0.0)) if name in waits else 0.0,
            workers=tuple(takers.get(name, ())),
            paused=tuple(paused.get(name, ())),
        )
        for name in sorted(names)
        # Workers also listen to the queue of upkeep, which has no rows in the tables.
        if name.startswith(("build.", "target."))
    )


def _takers(workers: Sequence[ReportedWorker]) -> tuple[Mapping[str, list[str]], Mapping[str, list[str]]]:
    """Return the names of the workers that live by queue, those that take from it and those that are paused."""
    takers, paused = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for worker in workers:
        if not worker.gone:
            for queue in worker.queues:
                (paused if worker.idle_reason else takers)[queue].append(worker.name)
    return takers, paused


def _running(targets: Targets) -> Mapping[str, int]:
    """Return by queue what is built or boots."""
    builds = Build.objects.filter(state=BuildState.BUILDING).order_by().values_list("queue")
    counts = Counter(dict(builds.annotate(number=Count("pk"))))
    boots = Run.objects.filter(state=RunState.RUNNING).order_by()
    counts.update(
        targets[target][0] for target in boots.values_list("target", flat=True) if target in targets
    )
    return counts


def _oldest(waiting: Sequence[WaitingBoots], targets: Targets) -> dict[str, float]:
    """Return by queue the seconds since the oldest item became ready: since its submission, or for a boot since its kernel was built."""
    now = timezone.now()
    builds = Build.objects.filter(
        state=BuildState.QUEUED, variants__experiment__state__in=OPEN_EXPERIMENT
    ).order_by()
    first = builds.values_list("queue").annotate(since=Min("created_at"))
    oldest = {queue: (now - since).total_seconds() for queue, since in first}
    by_group = defaultdict[str, list[str]](list)
    for queue, group in targets.values():
        by_group[group].append(queue)
    for boots in waiting:
        if boots.ready_s is None:
            continue
        shared = boots.group and boots.target is None
        own = targets.get(boots.target or boots.asked, ("", ""))[0]
        for queue in by_group[boots.group] if shared else [own]:
            oldest[queue] = max(oldest.get(queue, boots.ready_s), boots.ready_s)
    return oldest
