# SPDX-License-Identifier: GPL-2.0-or-later
"""Find the queues with work that is ready, and whether a worker is free for it."""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.db.models.expressions import RawSQL
from django.utils import timezone

from kernels.architecture import BUILT
from lab.models import Build, Experiment, Run, Target, Worker
from lab.models.hardware import GONE_S
from lab.models.states import OPEN_EXPERIMENT, BuildState, RunState, VariantState
from lab.runs.order import OPEN_BUILD
from lab.targets.health_checks import due_checks
from lab.targets.usable import usable_targets
from lab.targets.waiting_boots import WaitingBoots, waiting_boots

TARGET = "target."
# How many boots of an experiment any target may take, counted no further than some number.
_FIRST_UNASSIGNED = """(SELECT count(*) FROM (SELECT 1 FROM lab_run q
  WHERE q.experiment_id = lab_experiment.id AND q.state = 'queued' AND q.target_id IS NULL
    AND (SELECT v.state = 'ready' AND (SELECT b.state = 'built' FROM lab_build b WHERE b.id = v.build_id)
      FROM lab_variant v WHERE v.id = q.variant_id) LIMIT %s) few)"""


@dataclass(frozen=True, slots=True)
class WaitingQueue:
    """One queue: how much waits and is under way; free: whether a wake-up for it would be of use.

    A target is free that boots nothing and may boot. A queue whose workers all say why they take nothing is not.
    """

    name: str
    waiting: int
    running: int
    free: bool


def target_queue(name: str) -> str:
    """The queue of a target."""
    return f"{TARGET}{name}"


def build_queue(request: Mapping[str, Any]) -> str:
    """The queue of the workers that can make what a build asks for."""
    return f"build.{BUILT.name}.{request['cc']}"[:100]


def waiting_queues(waiting: Iterable[WaitingBoots] | None = None) -> Mapping[str, WaitingQueue]:
    """Every queue in which something is ready to be taken, by its name. waiting: the boots that wait, where they are known."""
    idle = _idle_queues()
    checks = [WaitingQueue(target_queue(name), 1, 0, True) for name in due_checks()]
    # Queued boots come first: checks are for machines that have nothing else to do.
    boots = _target_queues(waiting_boots() if waiting is None else waiting)
    queues = {queue.name: queue for queue in [*checks, *_build_queues(), *boots]}
    for name in idle & queues.keys():
        queues[name] = replace(queues[name], free=False)
    return queues


def queues_to_wake() -> list[str]:
    """Return the queues a worker of which can take something that waits; of a group's no more than its boots that wait.

    A queue of builds is there once for each builder that is free, as far as builds wait: all of them begin at once. Which targets of a group is chosen again each time, since the worker of one may be gone. Sent each second: what it reads depends
    on the open experiments and on the targets that are free, not on how much waits.
    """
    idle = _idle_queues()
    boots = Run.objects.filter(target=OuterRef("pk"), state=RunState.RUNNING)
    rows = usable_targets().filter(~Exists(boots)).order_by("name").values_list("pk", "name", "group")
    free = {pk: (target_queue(name), group) for pk, name, group in rows if target_queue(name) not in idle}
    queued = (
        Build.objects.filter(state=BuildState.QUEUED).order_by().values_list("queue", flat=True).distinct()
    )
    builds = [queue for queue in queued if queue not in idle for _ in range(_builders_to_wake(queue))]
    targets = [queue for queue in map(target_queue, due_checks()) if queue not in idle]
    return [*builds, *dict.fromkeys([*targets, *(free[pk][0] for pk in _to_wake(free))])]


def _builders_to_wake(queue: str) -> int:
    """Return how many builds of a queue open experiments wait for, counted no further than to its free builders or one."""
    waiting = Build.objects.filter(queue=queue, state=BuildState.QUEUED)
    wanted = (
        waiting.filter(variants__experiment__state__in=OPEN_EXPERIMENT).order_by().values("pk").distinct()
    )
    if (few := len(wanted[:2])) < 2:
        return few
    seen_at = timezone.now() - timedelta(seconds=GONE_S)
    taking = Worker.objects.filter(seen_at__gt=seen_at, idle_reason="").values_list("queues", flat=True)
    building = Build.objects.filter(queue=queue, state=BuildState.BUILDING).count()
    free = sum(queue in queues for queues in taking) - building
    return len(wanted[: max(1, free)])


def _to_wake(free: Mapping[int, tuple[str, str]]) -> set[int]:
    """Return which free targets have a boot ready, or may take one of their group; free: queue and group by target."""
    if not free:
        return set()
    # Its own block goes on, whatever the others of its group do.
    targets = set(
        _ready_runs().filter(target__in=free).order_by().values_list("target", flat=True).distinct()
    )
    rest = defaultdict[str, list[int]](list)
    for pk, (_, group) in free.items():
        if group and pk not in targets:
            rest[group].append(pk)
    most = max(map(len, rest.values()), default=1)
    some = RawSQL(_FIRST_UNASSIGNED, [most])  # noqa: S611  our text
    building = Build.objects.filter(variants__experiment=OuterRef("pk"), state__in=OPEN_BUILD)
    asked = Experiment.objects.filter(
        ~Exists(building), Q(group="", target__in=free) | Q(group__in=rest), state__in=OPEN_EXPERIMENT
    )
    waiting: Counter[str] = Counter()
    for target, group, number in asked.order_by().annotate(some=some).values_list("target", "group", "some"):
        if group:
            waiting[group] += number
        elif number:
            targets.add(target)
    for group, number in waiting.items():
        targets.update(random.sample(rest[group], min(len(rest[group]), number)))
    return targets


def _build_queues() -> list[WaitingQueue]:
    wanted = Build.objects.filter(
        state__in=OPEN_BUILD, variants__experiment__state__in=OPEN_EXPERIMENT
    ).order_by()
    counted = Counter(
        {
            (queue, state): number
            for queue, state, number in wanted.values_list("queue", "state").annotate(
                number=Count("pk", distinct=True)
            )
        }
    )
    names = {queue for queue, state in counted if state == BuildState.QUEUED}
    return [
        WaitingQueue(name, counted[name, BuildState.QUEUED], counted[name, BuildState.BUILDING], True)
        for name in sorted(names)
    ]


def _ready_runs() -> QuerySet[Run]:
    """Return the boots that a target may take now."""
    building = Build.objects.filter(variants__experiment=OuterRef("experiment"), state__in=OPEN_BUILD)
    return Run.objects.filter(
        ~Exists(building),
        state=RunState.QUEUED,
        experiment__state__in=OPEN_EXPERIMENT,
        variant__state=VariantState.READY,
        variant__build__state=BuildState.BUILT,
    )


def _target_queues(waiting: Iterable[WaitingBoots]) -> list[WaitingQueue]:
    """A boot of a group that has begun no block waits for each target of the group."""
    by_target: Counter[int] = Counter()
    by_group: Counter[str] = Counter()
    for boots in waiting:
        if boots.target is not None:
            by_target[boots.target] += boots.ready
        elif boots.group:
            by_group[boots.group] += boots.ready
        else:
            by_target[boots.asked] += boots.ready
    running = set(Run.objects.filter(state=RunState.RUNNING).order_by().values_list("target", flat=True))
    free = set(usable_targets().values_list("pk", flat=True)) - running
    targets = Target.objects.order_by("name").values_list("pk", "name", "group")
    return [
        WaitingQueue(target_queue(name), number, int(pk in running), pk in free)
        for pk, name, group in targets
        if (number := by_target[pk] + by_group[group])
    ]


def _idle_queues() -> set[str]:
    """Return the queues whose every worker says why it takes nothing now."""
    alive = Worker.objects.filter(seen_at__gt=timezone.now() - timedelta(seconds=GONE_S))
    if not alive.exclude(idle_reason="").exists():
        return set()
    idle: set[str] = set()
    busy: set[str] = set()
    for queues, reason in alive.values_list("queues", "idle_reason"):
        (idle if reason else busy).update(queues)
    return idle - busy
