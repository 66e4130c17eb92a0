# SPDX-License-Identifier: GPL-2.0-or-later
"""Read the boots that wait: counted by experiment, variant and place first, so that no boot asks for its build by itself."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Min

from lab.models import Build, Experiment, Run, Variant
from lab.models.states import OPEN_EXPERIMENT, BuildState, RunState, VariantState


@dataclass(frozen=True, slots=True)
class WaitingBoots:
    """Boots of one variant that wait. target: where its block began, None where it has not; asked, group: what the experiment asked for.

    queued_at: of the first of them. built_at: when the kernel was there, None before. ready, built: the variant and its
    build are. building: some kernel of the experiment is still to come.
    """

    target: int | None
    asked: int
    group: str
    number: int
    queued_at: datetime
    built_at: datetime | None
    ready: bool
    built: bool
    building: bool


def waiting_boots() -> tuple[WaitingBoots, ...]:
    """Return all boots that wait, in five statements. Whoever asks for several lists of them reads them once and hands them on."""
    return tuple(_waiting())


def _waiting() -> Iterator[WaitingBoots]:
    still_open = Experiment.objects.filter(state__in=OPEN_EXPERIMENT)
    experiments = {pk: (asked, group) for pk, asked, group in still_open.values_list("pk", "target", "group")}
    queued = Run.objects.filter(state=RunState.QUEUED, experiment__in=list(experiments)).order_by()
    rows = list(
        queued.values_list("experiment", "variant", "target").annotate(
            number=Count("pk"), first=Min("created_at")
        )
    )
    variants = _variants({variant for _, variant, *_ in rows})
    under_way = Build.objects.filter(state__in=(BuildState.QUEUED, BuildState.BUILDING))
    building = set(under_way.order_by().values_list("variants__experiment", flat=True))
    for experiment, variant, target, number, first in rows:
        asked, group = experiments[experiment]
        state, built, built_at = variants[variant]
        yield WaitingBoots(
            target=target,
            asked=asked,
            group=group,
            number=number,
            queued_at=first,
            built_at=built_at,
            ready=state == VariantState.READY,
            built=built == BuildState.BUILT,
            building=experiment in building,
        )


def _variants(keys: set[int]) -> dict[int, tuple[str, str | None, datetime | None]]:
    """Return the state, and the state and the end of the build, by variant."""
    rows = list(Variant.objects.filter(pk__in=keys).values_list("pk", "state", "build"))
    # By key: a join of so many would read all builds.
    wanted = Build.objects.filter(pk__in={build for _, _, build in rows if build is not None})
    builds = {pk: (state, at) for pk, state, at in wanted.values_list("pk", "state", "finished_at")}
    return {pk: (state, *builds.get(build, (None, None))) for pk, state, build in rows}
