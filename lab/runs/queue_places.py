# SPDX-License-Identifier: GPL-2.0-or-later
"""Find the place of waiting experiments in the queues for builds and for targets, in a fixed number of queries."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from django.db.models import Count, QuerySet
from django.utils import timezone

from lab.experiments.progress import QueuePlace
from lab.models import Build, Experiment, Run
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
    """Return by number the place of those experiments that wait: for their builds first, then for their targets."""
    asked = set(wanted)
    if not asked:
        return {}
    rows = Experiment.objects.filter(state__in=OPEN_EXPERIMENT).order_by()
    active = {pk: (group, name) for pk, group, name in rows.values_list("pk", "group", "target__name")}
    builds, boots = _builds(), _boots(active)
    found: dict[int, QueuePlace] = {}
    if asked & builds.keys():
        found |= places_in(_ordered(builds, "lab_build"), _pace(Build.objects.filter(cached=False)))
    if asked & boots.keys():
        found |= places_in(_ordered(boots, "lab_run"), _pace(Run.objects.all()))
    return {pk: place for pk, place in found.items() if pk in asked}


def places_in(order: Sequence[Waiting], pace_s: float | None) -> dict[int, QueuePlace]:
    """Return the place of each experiment among those that wait for one of the same places. order: best first.

    pace_s: seconds that one piece takes, None where nothing was done lately.
    """
    return {row.id: _place(row, order, pace_s) for row in order}


def _place(row: Waiting, order: Sequence[Waiting], pace_s: float | None) -> QueuePlace:
    rivals = [other for other in order if other.places & row.places]
    ahead = rivals[: rivals.index(row)]
    pieces = sum(other.pieces for other in ahead)
    starts_s = None if pace_s is None else pieces * pace_s / len(row.places)
    text = f"{ordinal(len(ahead) + 1)} of {len(rivals)} for {row.what}"
    return QueuePlace(len(ahead) + 1, len(rivals), text, starts_s)


def ordinal(number: int) -> str:
    """Return such as "1st", "12th" and "23rd"."""
    teens = number % 100 in (11, 12, 13)
    return f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def _ordered(waiting: Mapping[int, Waiting], work: str) -> list[Waiting]:
    return [waiting[pk] for pk in experiments_in_order(work) if pk in waiting]


def _builds() -> dict[int, Waiting]:
    queued = Build.objects.filter(
        state=BuildState.QUEUED, variants__experiment__state__in=OPEN_EXPERIMENT
    ).order_by()
    counted = queued.values_list("variants__experiment", "queue").annotate(number=Count("pk", distinct=True))
    queues, pieces = defaultdict[int, set[str]](set), defaultdict[int, int](int)
    for experiment, queue, number in counted:
        queues[experiment].add(queue)
        pieces[experiment] += number
    return {pk: Waiting(pk, frozenset(found), pieces[pk], "a build") for pk, found in queues.items()}


def _boots(active: Mapping[int, tuple[str, str]]) -> dict[int, Waiting]:
    """Return the experiments whose builds are over and whose boots wait for targets that may boot.

    active: the group and the target that each open experiment asked for.
    """
    groups, usable = defaultdict[str, set[str]](set), set[str]()
    for name, group in usable_targets().values_list("name", "group"):
        usable.add(name)
        groups[group].add(name)
    building = Build.objects.filter(state__in=OPEN_BUILD, variants__experiment__in=active)
    unbuilt = set(building.order_by().values_list("variants__experiment", flat=True))
    queued = Run.objects.filter(
        experiment__in=active, state=RunState.QUEUED, variant__state=VariantState.READY
    )
    counted = queued.order_by().values_list("experiment").annotate(number=Count("pk"))
    found = {}
    for pk, number in counted:
        group, target = active[pk]
        places = frozenset(groups[group] if group else usable & {target})
        if places and pk not in unbuilt:
            what = f"group “{group}”" if group else f"target “{target}”"
            found[pk] = Waiting(pk, places, number, what)
    return found


def _pace(rows: QuerySet[Any]) -> float | None:
    """Return the median seconds of the last builds or boots of the last hour."""
    over = rows.filter(finished_at__gt=timezone.now() - LATELY, started_at__isnull=False).order_by(
        "-finished_at"
    )
    spans = [
        (end - start).total_seconds() for start, end in over.values_list("started_at", "finished_at")[:LAST]
    ]
    return median(spans) if spans else None
