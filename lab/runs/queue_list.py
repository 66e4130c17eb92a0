# SPDX-License-Identifier: GPL-2.0-or-later
"""Read the length of each queue, how long its work has been waiting, and which workers take from it."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Min
from django.utils import timezone

from lab.models import Build, Run, Target, Worker
from lab.models.states import OPEN_EXPERIMENT, BuildState, RunState
from lab.runs.queues import target_queue, waiting_queues
from lab.runs.workers import reported_workers
from lab.targets.waiting_boots import WaitingBoots, waiting_boots


@dataclass(frozen=True, slots=True)
class QueueLine:
    """One queue. oldest_s: how long the oldest in it could have been taken; workers: those that take from it and live."""

    name: str
    waiting: int
    running: int
    oldest_s: float
    workers: tuple[str, ...]
    paused: tuple[str, ...]

    @property
    def forsaken(self) -> bool:
        """Return whether something waits and no worker takes it."""
        return bool(self.waiting) and not self.workers


def queue_lines(
    workers: Sequence[Worker] | None = None, waiting: Sequence[WaitingBoots] | None = None
) -> tuple[QueueLine, ...]:
    """Every queue that something waits in, that somebody takes from, or that a target has; by name.

    workers, waiting: all workers, and the boots that wait, where they are known.
    """
    boots = waiting_boots() if waiting is None else waiting
    seen = reported_workers() if workers is None else workers
    takers, paused = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for worker in seen:
        for queue in worker.queues:
            if not worker.gone:
                (paused if worker.idle_reason else takers)[queue].append(worker.name)
    waits, since = waiting_queues(boots), _oldest(boots)
    running = _running()
    names = {
        *waits,
        *takers,
        *paused,
        *running,
        *map(target_queue, Target.objects.values_list("name", flat=True)),
    }
    # Workers also listen to what keeps the lab going, of which nothing waits in the tables.
    names = {name for name in names if name.startswith(("build.", "target."))}
    now = timezone.now()
    return tuple(
        QueueLine(
            name=name,
            waiting=waits[name].waiting if name in waits else 0,
            running=running.get(name, 0),
            oldest_s=max(0.0, (now - since[name]).total_seconds())
            if name in since and name in waits
            else 0.0,
            workers=tuple(takers[name]),
            paused=tuple(paused[name]),
        )
        for name in sorted(names)
    )


def _running() -> dict[str, int]:
    found: dict[str, int] = defaultdict(int)
    for queue in Build.objects.filter(state=BuildState.BUILDING).values_list("queue", flat=True):
        found[queue] += 1
    for target in Run.objects.filter(state=RunState.RUNNING).values_list("target__name", flat=True):
        found[target_queue(target or "")] += 1
    return found


def _oldest(waiting: Sequence[WaitingBoots]) -> dict[str, datetime]:
    """By queue, since when the oldest could have been taken: from its submission, a boot from its kernel's end on."""
    builds = Build.objects.filter(
        state=BuildState.QUEUED, variants__experiment__state__in=OPEN_EXPERIMENT
    ).order_by()
    found = dict(builds.values_list("queue").annotate(since=Min("created_at")))
    places: dict[tuple[int | None, str, int], datetime] = {}
    for boots in waiting:
        if boots.ready:
            place = boots.target, boots.group, boots.asked
            ready = max(boots.queued_at, boots.built_at or boots.queued_at)
            places[place] = min(places.get(place, ready), ready)
    by_key, by_group = dict[int, str](), defaultdict[str, list[str]](list)
    for pk, name, group in Target.objects.values_list("pk", "name", "group"):
        by_key[pk] = name
        by_group[group].append(name)
    for (target, group, asked), since in places.items():
        one = by_key.get(target or asked)
        names = by_group[group] if group and target is None else [one] if one else []
        for queue in map(target_queue, names):
            found[queue] = min(found.get(queue, since), since)
    return found
