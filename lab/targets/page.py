# SPDX-License-Identifier: GPL-2.0-or-later
"""Read one target for its page: its state, its latest boots, and its health checks with their steps."""

from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

import numpy as np
from django.db.models import Count, Q
from django.utils import timezone

from lab.errors import one_row
from lab.models import HealthCheck, Run, Target
from lab.models.states import RunState
from lab.models.storable import storable_text
from lab.statistics.change_points import steps_of
from lab.targets.health_checks import has_kernel
from lab.targets.health_overview import ILL_SHARE, LATELY

# How many of the latest checks are drawn, and how many of the latest boots are listed.
DRAWN, LISTED = 120, 20


@dataclass(frozen=True, slots=True)
class TargetPage:
    """One target. checks: the oldest first. steps: those with which the figures reach a new level. boots, lost: ended in the last day, and lost by the lab's fault.

    kernel: whether there is one to check it with. being_checked: a check runs now.
    """

    target: Target
    checks: tuple[HealthCheck, ...]
    steps: frozenset[HealthCheck]
    metric: str
    unit: str
    levels: tuple[float, ...]
    latest: tuple[Run, ...]
    boots: int
    lost: int
    running: int
    kernel: bool
    being_checked: bool

    @property
    def ill(self) -> bool:
        """Return whether the lab lost too many of its boots, as the overview says."""
        return self.lost > ILL_SHARE * self.boots


def target_page(name: str) -> TargetPage:
    """Return what a target's page shows. Raises UnknownRow."""
    target = one_row(Target.objects.filter(name=storable_text(name)), f'target "{name[:80]}"')
    rows = list(HealthCheck.objects.filter(target=target).order_by("-at", "-pk")[:DRAWN])[::-1]
    figures = [(index, row.value) for index, row in enumerate(rows) if row.value is not None and row.ok]
    places = steps_of(np.array([value for _, value in figures])) if figures else []
    # A machine that was never checked has no figure, and so no level.
    ends = [0, *places, len(figures)] if figures else []
    levels = [median(value for _, value in figures[start:end]) for start, end in pairwise(ends)]
    latest = next((row for row in reversed(rows) if row.metric), None)
    since = timezone.now() - LATELY
    counted = Run.objects.filter(target=target, finished_at__gte=since).aggregate(
        boots=Count("pk"), lost=Count("pk", filter=Q(state=RunState.FAILED, blame="lab"))
    )
    return TargetPage(
        target=target,
        checks=tuple(rows),
        steps=frozenset(rows[figures[place][0]] for place in places),
        metric=latest.metric if latest else "",
        unit=str(latest.environment.get("unit", "")) if latest else "",
        levels=tuple(levels),
        latest=_latest(target),
        kernel=has_kernel(target),
        running=Run.objects.filter(target=target, state=RunState.RUNNING).count(),
        being_checked=target.checked_until is not None and target.checked_until > timezone.now(),
        **counted,
    )


def target_tuning(target: Target) -> list[tuple[str, Any, str]]:
    """Return each declared setting with the state that the last boot found: (name, wanted, actual)."""
    conditions = {"target": target, "environment__has_key": "guest"}
    last = HealthCheck.objects.filter(**conditions).order_by("-at", "-pk").first()
    run = Run.objects.filter(**conditions, finished_at__isnull=False).order_by("-finished_at", "-pk").first()
    rows: list[Any] = [row for row in (last, run) if row is not None]
    newest = max(rows, key=lambda row: getattr(row, "at", None) or row.finished_at, default=None)
    state = newest.environment["guest"].get("tuning", {}) if newest else {}
    names = dict.fromkeys([*target.tuning, *state])
    return [(name, target.tuning.get(name, ""), str(state.get(name, ""))[:100]) for name in names]


def _latest(target: Target) -> tuple[Run, ...]:
    rows = Run.objects.filter(target=target, finished_at__isnull=False).order_by("-finished_at", "-pk")
    shown = rows.select_related("experiment", "variant")
    return tuple(shown.defer("environment", "extras", "problem_detail", "experiment__spec")[:LISTED])
