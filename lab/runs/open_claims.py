# SPDX-License-Identifier: GPL-2.0-or-later
"""Read which work is claimed, and by which process."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import F, QuerySet
from django.utils import timezone

from lab.models import Build, Case, Experiment, Run, Target, Variant
from lab.models.states import BuildState, RunState
from lab.runs.claim import Claim
from lab.runs.hand_back import lease_name

_HELD = ("pk", "claimed_by", "started_at", "lease_until", "token", "attempt")


@dataclass(frozen=True, slots=True)
class ClaimLine:
    """One build or boot that a worker has claimed; over: its lease has expired, so the worker is gone or stuck.

    lease: the token that distinguishes this claim from a later one. left_s: seconds until the lease expires, negative afterwards.
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
    """Return the kind of each open claim and the seconds until its lease expires, negative afterwards."""
    now = timezone.now()
    kinds = (("build", Build, BuildState.BUILDING), ("run", Run, RunState.RUNNING))
    return tuple(
        (kind, (until - now).total_seconds() if until else 0.0)
        for kind, model, state in kinds
        for until in model._default_manager.filter(state=state).values_list("lease_until", flat=True)
    )


def open_claims() -> tuple[ClaimLine, ...]:
    """Every open claim, builds first."""
    return (*_build_lines(_builds().order_by("pk")), *_run_lines(_runs().order_by("pk")))


def claims_to_end_first(most: int) -> tuple[ClaimLine, ...]:
    """Return this many open claims, those whose lease expires first, or expired first."""
    soonest = F("lease_until").asc(nulls_first=True)
    claims = [
        *_build_lines(_builds().order_by(soonest, "pk")[:most]),
        *_run_lines(_runs().order_by(soonest, "pk")[:most]),
    ]
    return tuple(sorted(claims, key=lambda claim: claim.left_s)[:most])


def boots_on(targets: Collection[int]) -> dict[str, ClaimLine]:
    """Return the boot that runs on each of these targets, by the target's name."""
    return {line.target: line for line in _run_lines(_runs().filter(target__in=targets))}


def count_claims() -> int:
    """Return how many claims are open."""
    return _builds().count() + _runs().count()


def _builds() -> QuerySet[Build]:
    return Build.objects.filter(state=BuildState.BUILDING)


def _runs() -> QuerySet[Run]:
    return Run.objects.filter(state=RunState.RUNNING)


def _build_lines(rows: QuerySet[Build]) -> Iterator[ClaimLine]:
    now = timezone.now()
    for *held, commit in rows.values_list(*_HELD, "commit"):
        yield _line("build", held, commit[:12], "", now)


def _run_lines(rows: QuerySet[Run]) -> Iterator[ClaimLine]:
    now = timezone.now()
    runs = list(rows.values_list(*_HELD, "experiment", "variant", "case", "target"))
    # There may be hundreds of boots: names are read by key, since a join would read whole tables.
    *_, experiments, variants, cases, targets = zip(*runs, strict=True) if runs else ((),) * 4
    experiment_names = dict(Experiment.objects.filter(pk__in={*experiments}).values_list("pk", "name"))
    variant_names = dict(Variant.objects.filter(pk__in={*variants}).values_list("pk", "name"))
    by_case = {case.pk: str(case) for case in Case.objects.filter(pk__in={*cases}).only("workload", "preset")}
    target_names = dict(Target.objects.filter(pk__in={*targets}).values_list("pk", "name"))
    for *held, experiment, variant, case, target in runs:
        # An experiment may be deleted meanwhile, with all that is its own.
        if case in by_case:
            label = f"{experiment_names[experiment]}: {variant_names[variant]}, {by_case[case]}"
            yield _line("run", held, label, target_names.get(target, ""), now)


def _line(kind: str, held: Sequence[Any], label: str, target: str, now: datetime) -> ClaimLine:
    """Make a line. held: the values of _HELD."""
    key, worker, started_at, until, token, attempt = held
    return ClaimLine(
        kind=kind,
        id=key,
        label=label,
        claimed_by=worker,
        started_at=started_at,
        lease_until=until,
        over=until is not None and until < now,
        lease=lease_name(token),
        attempt=attempt,
        left_s=(until - now).total_seconds() if until else 0.0,
        target=target,
    )
