# SPDX-License-Identifier: GPL-2.0-or-later
"""Read the state of targets: their latest boots, and reasons to doubt them."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Max, Min, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from lab.models import Build, HealthCheck, Run, Target
from lab.models.states import OPEN_EXPERIMENT, BuildState, RunState
from lab.targets.drivers import DRIVERS

# What is older says little of a machine now.
LATELY = timedelta(days=1)
# A boot takes minutes at most: a target with work that ends none for so long is stuck, or nobody works for it.
STUCK = timedelta(hours=1)
# Of a day's boots, the share lost by the lab's fault from which a target is called ill.
ILL_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class TargetHealth:
    """One target over the last day; complaints: what speaks against it, a line each.

    finished: boots that ended there, failed: those among them that the lab is to blame for.
    """

    id: int
    name: str
    driver: str
    vcpus: int
    memory_mib: int
    enabled: bool
    finished: int
    failed: int
    running: int
    waiting: int
    last_finished: datetime | None
    complaints: tuple[str, ...]
    group: str = ""
    faults: int = 0
    quarantined_at: datetime | None = None
    quarantine_reason: str = ""
    checked_at: datetime | None = None
    check_ok: bool | None = None

    @property
    def sized(self) -> bool:
        """Return whether its vCPUs and memory are what the lab gives it."""
        return DRIVERS[self.driver].sized


@dataclass(frozen=True, slots=True)
class _Ended:
    """Boots that ended on a target in the last day."""

    finished: int = 0
    failed: int = 0
    last: datetime | None = None


@dataclass(frozen=True, slots=True)
class _Open:
    """Open boots of a target. since: when the first boot that is ready to run was queued."""

    running: int = 0
    waiting: int = 0
    since: datetime | None = None


def target_healths(now: datetime | None = None) -> tuple[TargetHealth, ...]:
    """Every target with how it did, by name."""
    at = now or timezone.now()
    ended, still_open, checks = _ended(at), _still_open(), _last_checks()
    return tuple(
        _health(
            target,
            ended.get(target.pk, _Ended()),
            still_open.get(target.pk, _Open()),
            checks.get(target.pk),
            at,
        )
        for target in Target.objects.order_by("name")
    )


def _ended(at: datetime) -> dict[int, _Ended]:
    rows = (
        Run.objects.filter(finished_at__gte=at - LATELY)
        .order_by()
        .annotate(place=Coalesce("target", "experiment__target"))
        .values_list("place")
        .annotate(
            finished=Count("pk"),
            failed=Count("pk", filter=Q(state=RunState.FAILED, blame="lab")),
            last=Max("finished_at"),
        )
    )
    return {target: _Ended(finished, failed, last) for target, finished, failed, last in rows}


def _still_open() -> dict[int, _Open]:
    building = Build.objects.filter(state__in=(BuildState.QUEUED, BuildState.BUILDING))
    ready = Q(state=RunState.QUEUED) & ~Q(experiment__in=building.values("variants__experiment"))
    rows = (
        Run.objects.filter(state__in=(RunState.QUEUED, RunState.RUNNING))
        .filter(experiment__state__in=OPEN_EXPERIMENT)
        .order_by()
        .annotate(place=Coalesce("target", "experiment__target"))
        .values_list("place")
        .annotate(
            running=Count("pk", filter=Q(state=RunState.RUNNING)),
            waiting=Count("pk", filter=Q(state=RunState.QUEUED)),
            since=Min("created_at", filter=ready),
        )
    )
    return {target: _Open(running, waiting, since) for target, running, waiting, since in rows}


Checked = tuple[datetime, bool]


def _last_checks() -> dict[int, Checked]:
    """The newest health check of each target."""
    newest = HealthCheck.objects.filter(target=OuterRef("pk")).order_by("-at", "-pk")
    rows = Target.objects.annotate(at=Subquery(newest.values("at")[:1]), ok=Subquery(newest.values("ok")[:1]))
    return {pk: (at, ok) for pk, at, ok in rows.values_list("pk", "at", "ok") if at is not None}


def _health(
    target: Target, ended: _Ended, still_open: _Open, check: Checked | None, at: datetime
) -> TargetHealth:
    return TargetHealth(
        id=target.pk,
        name=target.name,
        driver=target.driver,
        vcpus=target.vcpus,
        memory_mib=target.memory_mib,
        enabled=target.enabled,
        finished=ended.finished,
        failed=ended.failed,
        running=still_open.running,
        waiting=still_open.waiting,
        last_finished=ended.last,
        complaints=tuple(_complaints(target, ended, still_open, at)),
        group=target.group,
        faults=target.faults,
        quarantined_at=target.quarantined_at,
        quarantine_reason=target.quarantine_reason,
        checked_at=check[0] if check else None,
        check_ok=check[1] if check else None,
    )


def _complaints(target: Target, ended: _Ended, still_open: _Open, at: datetime) -> Iterator[str]:
    if not target.enabled:
        waits = f"; {still_open.waiting} boots wait for it" if still_open.waiting else ""
        yield f"disabled{waits}"
    if target.quarantined_at:
        yield f"in quarantine: {target.quarantine_reason or 'no reason was given'}"
    if ended.failed > ILL_SHARE * ended.finished:
        yield f"{ended.failed} of the {ended.finished} boots of the last day failed by the lab's fault"
    quiet = ended.last is None or ended.last < at - STUCK
    if target.enabled and quiet and still_open.since and still_open.since < at - STUCK:
        yield f"no boot has ended for an hour though {still_open.waiting} wait"
