# SPDX-License-Identifier: GPL-2.0-or-later
"""Read the state of targets: their latest boots, and reasons to doubt them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db.models import Count, F, Max, OuterRef, Q, Subquery
from django.utils import timezone

from lab.models import HealthCheck, Run, Target
from lab.models.states import RunState
from lab.targets.drivers import DRIVERS
from lab.targets.fleet import Fleet, TargetRow

# Older boots say little about a machine now.
LATELY = timedelta(days=1)
# A boot takes minutes at most: a target with work that ends none for this long is stuck, or has no worker.
STUCK = timedelta(hours=1)
# The share of a day's boots lost by the lab's fault above which a target is called ill.
ILL_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class TargetHealth:
    """One target over the last day; complaints: reasons to doubt it, a line each.

    finished: boots that ended there, failed: those among them that the lab is to blame for.
    """

    row: TargetRow
    finished: int
    failed: int
    running: int
    waiting: int
    last_finished: datetime | None
    complaints: tuple[str, ...]

    @property
    def sized(self) -> bool:
        """Return whether its vCPUs and memory are what the lab gives it."""
        return DRIVERS[self.row.driver].sized


@dataclass(frozen=True, slots=True)
class _Ended:
    """Boots that ended on a target in the last day."""

    finished: int = 0
    failed: int = 0
    last: datetime | None = None

    def with_more(self, finished: int, failed: int, last: datetime) -> _Ended:
        """Return the sum of these and others."""
        newest = last if self.last is None else max(last, self.last)
        return _Ended(self.finished + finished, self.failed + failed, newest)


@dataclass(frozen=True, slots=True)
class _Open:
    """Open boots of a target. queued_s: seconds since the first one with all kernels built was queued."""

    running: int = 0
    waiting: int = 0
    queued_s: float = 0.0


_NO_BOOTS, _NONE_OPEN = _Ended(), _Open()


class LastCheck(NamedTuple):
    """The newest health check of a target."""

    at: datetime
    ok: bool


def target_healths(fleet: Fleet) -> tuple[TargetHealth, ...]:
    """Return the health of every target, by name."""
    at = timezone.now()
    ended, still_open = _ended(at), _still_open(fleet)
    return tuple(
        _health(target, ended.get(target.id, _NO_BOOTS), still_open.get(target.id, _NONE_OPEN), at)
        for target in fleet.targets
    )


def last_checks(targets: Collection[int] | None = None) -> Mapping[int, LastCheck]:
    """Return the newest check of these targets, or of all, by target; targets never checked are left out."""
    rows = Target.objects.order_by() if targets is None else Target.objects.filter(pk__in=targets).order_by()
    newest = HealthCheck.objects.filter(target=OuterRef("pk")).order_by("-at", "-pk")
    # Two index look-ups for each: a join would read all checks.
    checked = rows.annotate(at=Subquery(newest.values("at")[:1]), ok=Subquery(newest.values("ok")[:1]))
    return {target: LastCheck(at, ok) for target, at, ok in checked.values_list("pk", "at", "ok") if at}


def _ended(at: datetime) -> dict[int, _Ended]:
    lately = Run.objects.filter(finished_at__gte=at - LATELY).order_by()
    # A boot has a target once it is claimed; one that never was counts for its experiment's.
    parts = (
        lately.filter(target__isnull=False).annotate(place=F("target")),
        lately.filter(target__isnull=True).annotate(place=F("experiment__target")),
    )
    by_target: dict[int, _Ended] = {}
    for part in parts:
        rows = part.values_list("place").annotate(
            finished=Count("pk"),
            failed=Count("pk", filter=Q(state=RunState.FAILED, blame="lab")),
            last=Max("finished_at"),
        )
        for target, finished, failed, last in rows:
            by_target[target] = by_target.get(target, _Ended()).with_more(finished, failed, last)
    return by_target


def _still_open(fleet: Fleet) -> dict[int, _Open]:
    """Return by target its running and its waiting boots; those of a group count at the target that the experiment names."""
    waiting: Counter[int] = Counter()
    queued_s: dict[int, float] = {}
    for boots in fleet.waiting:
        place = boots.target or boots.asked
        waiting[place] += boots.number
        if boots.queued_s is not None:
            queued_s[place] = max(queued_s.get(place, 0.0), boots.queued_s)
    return {
        place: _Open(fleet.running.get(place, 0), waiting[place], queued_s.get(place, 0.0))
        for place in {*fleet.running, *waiting}
    }


def _health(target: TargetRow, ended: _Ended, still_open: _Open, at: datetime) -> TargetHealth:
    return TargetHealth(
        row=target,
        finished=ended.finished,
        failed=ended.failed,
        running=still_open.running,
        waiting=still_open.waiting,
        last_finished=ended.last,
        complaints=tuple(_complaints(target, ended, still_open, at)),
    )


def _complaints(target: TargetRow, ended: _Ended, still_open: _Open, at: datetime) -> Iterator[str]:
    if not target.enabled:
        waits = f"; {still_open.waiting} boots wait for it" if still_open.waiting else ""
        yield f"disabled{waits}"
    if target.quarantined_at:
        yield f"in quarantine: {target.quarantine_reason or 'no reason was given'}"
    if ended.failed > ILL_SHARE * ended.finished:
        yield f"{ended.failed} of the {ended.finished} boots of the last day failed by the lab's fault"
    quiet = ended.last is None or ended.last < at - STUCK
    if target.enabled and quiet and still_open.queued_s > STUCK.total_seconds():
        yield f"no boot has ended for an hour though {still_open.waiting} wait"
