# SPDX-License-Identifier: GPL-2.0-or-later
"""Order the queue: priority first, then the submitter who used the lab least, then the oldest experiment.

What an answer costs depends on how many experiments are open, not on how much of them waits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery
from django.utils import timezone

from lab.models import Build, Experiment, Run, Target
from lab.models.states import OPEN_EXPERIMENT, BuildState, RunState, VariantState
from lab.runs.blocks import may_boot_on
from lab.targets.usable import usable_targets

OPEN_BUILD = (BuildState.QUEUED, BuildState.BUILDING)

# By submitter: seconds of machine time; None is whoever sits at the lab's own terminal.
Used = Mapping[int | None, float]
# What "lately" is: of so long, the last so many. A fixed number keeps a claim's cost what it is.
LATELY = timedelta(hours=1)
LAST = 200
# Work under way counts as at least so long: two that have just begun are more than one.
BEGUN_S = 60.0
# Of one experiment's pieces, how many are offered before the next wake-up: others may be claiming them too.
TRIED = 16
# Experiments asked at once whether they have something ready: mostly the first one has.
FIRST_LOOK, NEXT_LOOK = 2, 64


def ready_builds(queue: str | None = None, experiment_id: int | None = None) -> Iterator[int]:
    """The builds that wait, best first; one that experiments share comes with the first of them."""
    waiting = Build.objects.filter(state=BuildState.QUEUED, variants__experiment=OuterRef("pk"))
    if queue is not None:
        waiting = waiting.filter(queue=queue)
    first = waiting.order_by("variants__position").values("pk")[:1]
    for experiment in _in_order(_open(experiment_id), first, builds_used):
        own = Build.objects.filter(state=BuildState.QUEUED, variants__experiment=experiment)
        if queue is not None:
            own = own.filter(queue=queue)
        yield from own.order_by("variants__position").values_list("pk", flat=True)[:TRIED]


def ready_runs(target: Target | None = None, experiment_id: int | None = None) -> Iterator[int]:
    """The boots that are ready, best first, of each experiment in the order its blocks were shuffled.

    A run is ready when its variant is, nothing of its experiment is left to build, and its target may boot.
    """
    found = _open(experiment_id)
    waiting = Run.objects.filter(
        state=RunState.QUEUED, variant__state=VariantState.READY, variant__build__state=BuildState.BUILT
    )
    if target is None:
        groups = usable_targets().exclude(group="").values("group")
        found = found.filter(Q(group__in=groups) | Q(group="", target__in=usable_targets()))
        waiting = waiting.filter(Q(target=None) | Q(target__in=usable_targets()))
    else:
        found = found.filter(may_have(target))
        waiting = waiting.filter(may_boot_on(target))
    first = waiting.filter(experiment=OuterRef("pk")).order_by("position").values("pk")[:1]
    for experiment in _in_order(found, first, boots_used, ~Exists(_left_to_build())):
        own = waiting.filter(experiment=experiment).order_by("position")
        yield from own.values_list("pk", flat=True)[:TRIED]


def may_have(target: Target) -> Q:
    """Return the experiments that boot on a target: those that name it, or its group."""
    return Q(group="", target=target) | (Q(group=target.group) if target.group else Q(pk__in=()))


def _left_to_build() -> QuerySet[Build]:
    return Build.objects.filter(variants__experiment=OuterRef("pk"), state__in=OPEN_BUILD)


def _open(experiment_id: int | None) -> QuerySet[Experiment]:
    found = Experiment.objects.filter(state__in=OPEN_EXPERIMENT).order_by()
    return found if experiment_id is None else found.filter(pk=experiment_id)


def _in_order(
    found: QuerySet[Experiment],
    first: QuerySet[Any, Any],
    used: Callable[[], Used],
    *more: Any,
) -> Iterator[int]:
    """Open experiments that have something ready, best first."""
    rows = in_turn(found.values_list("pk", "priority", "submitter"), used)
    start, size = 0, FIRST_LOOK
    while start < len(rows):
        asked = rows[start : start + size]
        # Asked of a few, for it takes a look at each one's builds and boots.
        looked = Experiment.objects.filter(*more, pk__in=asked).order_by().annotate(first=Subquery(first))
        having = set(looked.filter(first__isnull=False).values_list("pk", flat=True))
        yield from (pk for pk in asked if pk in having)
        start, size = start + size, NEXT_LOOK


def in_turn(rows: Iterable[tuple[int, int, int | None]], used: Callable[[], Used]) -> list[int]:
    """Return the numbers of experiments, best first. rows: number, priority and submitter of each."""
    known = list(rows)
    share: Used = used() if len({submitter for _, _, submitter in known}) > 1 else {}
    known.sort(key=lambda row: (-row[1], share.get(row[2], 0.0), row[0]))
    return [pk for pk, _, _ in known]


def boots_used() -> Used:
    """Seconds of boots by submitter: of those under way, and of the last that ended."""
    return _added_up(Run.objects.order_by(), "experiment__submitter")


def builds_used() -> Used:
    """Seconds of builds by submitter, whole for each who asks for one."""
    return _added_up(Build.objects.order_by().distinct(), "variants__experiment__submitter")


def _added_up(rows: QuerySet[Any], submitter: str) -> Used:
    now = timezone.now()
    used: dict[int | None, float] = defaultdict(float)
    begun = rows.filter(state__in=(RunState.RUNNING, BuildState.BUILDING))
    for _, who, start in begun.values_list("pk", submitter, "started_at"):
        used[who] += max(BEGUN_S, _seconds(start, now))
    over = rows.filter(finished_at__gt=now - LATELY, started_at__isnull=False).order_by("-finished_at")
    for _, who, start, end in over.values_list("pk", submitter, "started_at", "finished_at")[:LAST]:
        used[who] += _seconds(start, end)
    return used


def _seconds(start: datetime | None, end: datetime | None) -> float:
    return max(0.0, (end - start).total_seconds()) if start and end else 0.0
