# SPDX-License-Identifier: GPL-2.0-or-later
"""Read which work is claimed, and by which process."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from django.db.models import F, Prefetch, QuerySet
from django.utils import timezone

from lab.models import Build, Case, Experiment, Run, Target, Variant
from lab.models.states import BuildState, RunState
from lab.runs.claim import Claim
from lab.runs.hand_back import lease_name

_SHOWN = ("claimed_by", "started_at", "lease_until", "token", "attempt")
_NAMED = ("experiment", "variant", "case", "target")


@dataclass(frozen=True, slots=True)
class ClaimLine:
    """One build or boot that a worker has claimed; over: its lease has expired, so the worker is gone or stuck.

    lease: the token that distinguishes this claim from a later one. left_s: until the lease runs out, negative since it did.
    """

    kind: str
    id: int
    label: str
    claimed_by: str
    started_at: datetime | None
    lease_until: datetime | None
    over: bool
    lease: str
    attempt: int
    left_s: float
    target: str


def claim_subjects(claim: Claim) -> dict[str, str | int]:
    """Return the subjects of log lines during the work on a claim, as lab.operations.logs.about takes it."""
    if claim.kind == "build":
        worker = Build.objects.filter(pk=claim.id).values_list("claimed_by", flat=True).first()
        return {"build": claim.id, "worker": worker or ""}
    rows = Run.objects.filter(pk=claim.id).values_list(
        "claimed_by", "experiment", "target__name", "experiment__target__name"
    )
    worker, experiment, booted_on, asked_for = rows.get()
    return {"run": claim.id, "worker": worker, "experiment": experiment, "target": booted_on or asked_for}


def held_leases() -> tuple[tuple[str, float], ...]:
    """Return the kind of each open claim and the seconds until its lease expires, negative since it did."""
    now = timezone.now()
    kinds = (("build", Build, BuildState.BUILDING), ("run", Run, RunState.RUNNING))
    return tuple(
        (kind, (until - now).total_seconds() if until else 0.0)
        for kind, model, state in kinds
        for until in model._default_manager.filter(state=state).values_list("lease_until", flat=True)
    )


def open_claims() -> tuple[ClaimLine, ...]:
    """Every open claim, builds first."""
    return (*_lines(_builds().order_by("pk")), *_lines(_runs().order_by("pk")))


def claims_to_end_first(most: int) -> tuple[ClaimLine, ...]:
    """Return this many open claims, those whose lease expires first, or expired first."""
    soonest = F("lease_until").asc(nulls_first=True)
    claims = [
        *_lines(_builds().order_by(soonest, "pk")[:most]),
        *_lines(_runs().order_by(soonest, "pk")[:most]),
    ]
    return tuple(sorted(claims, key=lambda claim: claim.left_s)[:most])


def boots_on(targets: Collection[int]) -> dict[int, ClaimLine]:
    """Return the boot that runs on each of these targets, by target."""
    runs = list(_runs().filter(target__in=targets))
    return {run.target_id: line for run, line in zip(runs, _lines(runs), strict=True) if run.target_id}


def count_claims() -> int:
    """Return how many claims are open."""
    return _builds().count() + _runs().count()


def _builds() -> QuerySet[Build]:
    return Build.objects.filter(state=BuildState.BUILDING).defer("request", "problem_detail")


def _runs() -> QuerySet[Run]:
    # There may be some hundreds of boots: their names by key, where a join would read whole tables.
    named = (
        Prefetch("experiment", Experiment.objects.only("name")),
        Prefetch("variant", Variant.objects.only("name")),
        Prefetch("case", Case.objects.only("workload", "preset")),
        Prefetch("target", Target.objects.only("name")),
    )
    runs = Run.objects.filter(state=RunState.RUNNING).prefetch_related(*named)
    return runs.only(*_SHOWN, *_NAMED)


def _lines(rows: Iterable[Build | Run]) -> Iterator[ClaimLine]:
    now = timezone.now()
    for row in rows:
        run = row if isinstance(row, Run) else None
        yield ClaimLine(
            kind="run" if run else "build",
            id=row.pk,
            label=_label(row),
            claimed_by=row.claimed_by,
            started_at=row.started_at,
            lease_until=row.lease_until,
            over=row.lease_until is not None and row.lease_until < now,
            lease=lease_name(row.token),
            attempt=row.attempt,
            target=run.target.name if run and run.target else "",
            left_s=(row.lease_until - now).total_seconds() if row.lease_until else 0.0,
        )


def _label(row: Build | Run) -> str:
    if isinstance(row, Build):
        return row.commit[:12]
    return f"{row.experiment.name}: {row.variant.name}, {row.case}"
