# SPDX-License-Identifier: GPL-2.0-or-later
"""Find the place of waiting experiments in the queues for builds and for targets, in a fixed number of queries."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from lab.experiments.progress import QueuePlace
from lab.models import Build, Experiment, Run, Target
from lab.models.states import OPEN_EXPERIMENT, BuildState, RunState, VariantState
from lab.runs.order import LAST, LATELY, OPEN_BUILD, experiments_in_order
from lab.targets.usable import usable_targets


@dataclass(frozen=True, slots=True)
class Waiting:
    """An experiment that waits. places: queues or targets that may take it; pieces: its builds or boots that wait."""

    id: int
    places: frozenset[str]
    pieces: int
    what: str


def queue_places(wanted: Iterable[int]) -> dict[int, QueuePlace]:
    """Return by number the place of those experiments that wait: for their builds first, then for their targets.

    Waiting clients poll it repeatedly, so it reads only work for the same queues or targets.
    """
    asked = set(wanted)
    if not asked:
        return {}
    places: dict[int, QueuePlace] = {}
    if builds := _builds(asked):
        places |= places_in(_ordered(builds, "lab_build"), _pace(Build.objects.filter(cached=False)), asked)
    if boots := _boots(asked - builds.keys()):
        places |= places_in(_ordered(boots, "lab_run"), _pace(Run.objects.all()), asked)
    return places


def places_in(
    order: Sequence[Waiting], pace_s: float | None, wanted: Collection[int]
) -> dict[int, QueuePlace]:
    """Return the place of each wanted experiment among those that wait for one of the same places. order: best first.

    pace_s: seconds that one piece takes, None where nothing was done lately.
    """
    return {row.id: _place(row, order, pace_s) for row in order if row.id in wanted}


def _place(row: Waiting, order: Sequence[Waiting], pace_s: float | None) -> QueuePlace:
    rivals = [other for other in order if other.places & row.places]
    ahead = rivals[: rivals.index(row)]
    pieces = sum(other.pieces for other in ahead)
    starts_s = None if pace_s is None else pieces * pace_s / len(row.places)
    text = f"{ordinal(len(ahead) + 1)} of {len(rivals)} for {row.what}"
    return QueuePlace(len(ahead) + 1, len(rivals), text, starts_s)


def ordinal(number: int) -> str:
    """Return an ordinal, such as "1st", "12th" and "23rd"."""
    teens = number % 100 in (11, 12, 13)
    return f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def _ordered(waiting: Mapping[int, Waiting], work: str) -> list[Waiting]:
    return [waiting[pk] for pk in experiments_in_order(work) if pk in waiting]


def _builds(asked: Collection[int]) -> dict[int, Waiting]:
    """Return the experiments whose builds wait in one of the queues of the wanted experiments' builds."""
    queued = Build.objects.filter(
        state=BuildState.QUEUED, variants__experiment__state__in=OPEN_EXPERIMENT
    ).order_by()
    ours = set(queued.filter(variants__experiment__in=asked).values_list("queue", flat=True).distinct())
    if not ours:
        return {}
    counted = queued.filter(queue__in=ours).values_list("variants__experiment", "queue")
    queues, pieces = defaultdict[int, set[str]](set), defaultdict[int, int](int)
    for experiment, queue, number in counted.annotate(number=Count("pk", distinct=True)):
        queues[experiment].add(queue)
        pieces[experiment] += number
    return {pk: Waiting(pk, frozenset(names), pieces[pk], "a build") for pk, names in queues.items()}


def _boots(asked: Collection[int]) -> dict[int, Waiting]:
    """Return the experiments whose builds are over and whose boots wait for targets that the wanted experiments may take."""
    is_open = Experiment.objects.filter(state__in=OPEN_EXPERIMENT).order_by()
    wanted = is_open.filter(pk__in=asked).values_list("group", "target__name")
    near = usable_targets().filter(
        Q(group__in={group for group, _ in wanted if group})
        | Q(name__in={target for group, target in wanted if not group})
    )
    groups, usable = _places(near)
    active = {
        pk: (group, target)
        for pk, group, target in is_open.filter(
            Q(group__in=groups.keys() - {""}) | Q(group="", target__name__in=usable)
        ).values_list("pk", "group", "target__name")
    }
    building = Build.objects.filter(state__in=OPEN_BUILD, variants__experiment__in=active)
    unbuilt = set(building.order_by().values_list("variants__experiment", flat=True))
    queued = Run.objects.filter(
        experiment__in=active.keys() - unbuilt, state=RunState.QUEUED, variant__state=VariantState.READY
    )
    waiting = {}
    for pk, number in queued.order_by().values_list("experiment").annotate(number=Count("pk")):
        group, target = active[pk]
        what = f"group “{group}”" if group else f"target “{target}”"
        waiting[pk] = Waiting(pk, groups[group] if group else frozenset({target}), number, what)
    return waiting


def _places(near: QuerySet[Target]) -> tuple[dict[str, frozenset[str]], set[str]]:
    """Return the usable targets of each group that any of these is in, and the names of all of them."""
    names = defaultdict[str, set[str]](set)
    alone = set[str]()
    for name, group in near.values_list("name", "group"):
        (names[group] if group else alone).add(name)
    for name, group in usable_targets().filter(group__in=names).values_list("name", "group"):
        names[group].add(name)
    groups = {group: frozenset(members) for group, members in names.items()}
    return groups, alone.union(*groups.values())


def _pace(rows: QuerySet[Any]) -> float | None:
    """Return the median seconds of the last builds or boots of the last hour."""
    over = rows.filter(finished_at__gt=timezone.now() - LATELY, started_at__isnull=False).order_by(
        "-finished_at"
    )
    spans = [
        (end - start).total_seconds() for start, end in over.values_list("started_at", "finished_at")[:LAST]
    ]
    return median(spans) if spans else None
