# SPDX-License-Identifier: GPL-2.0-or-later
"""Find the queues with work that is ready, and whether a worker is free for it."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from django.db.models import Count, Exists, OuterRef
from django.utils import timezone

from kernels.architecture import BUILT
from lab.models import Build, Run, Target, Worker
from lab.models.states import OPEN_EXPERIMENT, BuildState, RunState, VariantState
from lab.runs.order import OPEN_BUILD
from lab.targets.health_checks import due_checks
from lab.targets.usable import usable_targets

# A worker that was not heard of for so long is gone.
GONE_S = 30.0
TARGET = "target."


@dataclass(frozen=True, slots=True)
class WaitingQueue:
    """One queue: how much waits and is under way; free: whether a wake-up for it would be of use.

    A target is free that boots nothing and may boot. A queue whose workers all say why they take nothing is not.
    group: of a target for whose group something waits. shared: how much of it any target of the group may take.
    """

    name: str
    waiting: int
    running: int
    free: bool
    group: str = ""
    shared: int = 0


def target_queue(name: str) -> str:
    """The queue of a target."""
    return f"{TARGET}{name}"


def build_queue(request: Mapping[str, Any]) -> str:
    """The queue of the workers that can make what a build asks for."""
    return f"build.{BUILT.name}.{request['cc']}"[:100]


def waiting_queues() -> Mapping[str, WaitingQueue]:
    """Every queue in which something is ready to be taken, by its name."""
    idle = _idle_queues()
    checks = [WaitingQueue(target_queue(name), 1, 0, True) for name in due_checks()]
    # What waits to be booted comes first: checks are for machines that have nothing else to do.
    found = {one.name: one for one in [*checks, *_build_queues(), *_target_queues()]}
    return {name: replace(one, free=one.free and name not in idle) for name, one in found.items()}


def queues_to_wake() -> list[str]:
    """Return the queues a worker of which can take something that waits; of a group's no more than its boots that wait.

    Which targets of a group is chosen anew each time, since the worker of one may be gone.
    """
    free = [queue for queue in waiting_queues().values() if queue.free]
    # Its own block goes on, whatever the others of its group do.
    found = [queue.name for queue in free if queue.waiting > queue.shared]
    equal = defaultdict[str, list[WaitingQueue]](list)
    for queue in free:
        if queue.waiting == queue.shared:
            equal[queue.group].append(queue)
    for queues in equal.values():
        found += [queue.name for queue in random.sample(queues, min(len(queues), queues[0].shared))]
    return found


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


def _target_queues() -> list[WaitingQueue]:
    """A boot of a group that has begun no block waits for each target of the group."""
    building = Build.objects.filter(variants__experiment=OuterRef("experiment"), state__in=OPEN_BUILD)
    ready = Run.objects.filter(
        ~Exists(building),
        state=RunState.QUEUED,
        experiment__state__in=OPEN_EXPERIMENT,
        variant__state=VariantState.READY,
        variant__build__state=BuildState.BUILT,
    ).order_by()
    by_target: Counter[int] = Counter()
    by_group: Counter[str] = Counter()
    rows = ready.values_list("target", "experiment__group", "experiment__target").annotate(number=Count("pk"))
    for target, group, asked, number in rows:
        if target is not None:
            by_target[target] += number
        elif group:
            by_group[group] += number
        else:
            by_target[asked] += number
    running = set(Run.objects.filter(state=RunState.RUNNING).values_list("target", flat=True))
    usable = set(usable_targets().values_list("pk", flat=True))
    return [
        WaitingQueue(
            target_queue(one.name),
            by_target[one.pk] + by_group[one.group],
            int(one.pk in running),
            one.pk in usable - running,
            one.group,
            by_group[one.group],
        )
        for one in Target.objects.order_by("name")
        if by_target[one.pk] + by_group[one.group]
    ]


def _idle_queues() -> set[str]:
    """Queues whose every worker says why it takes nothing now."""
    alive = Worker.objects.filter(seen_at__gt=timezone.now() - timedelta(seconds=GONE_S))
    idle: set[str] = set()
    busy: set[str] = set()
    for queues, reason in alive.values_list("queues", "idle_reason"):
        (idle if reason else busy).update(queues)
    return idle - busy
