# SPDX-License-Identifier: GPL-2.0-or-later
"""Read which work is claimed, and by which process."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Prefetch
from django.utils import timezone

from lab.models import Build, Case, Experiment, Run, Target, Variant
from lab.models.states import BuildState, RunState
from lab.runs.claim import Claim
from lab.runs.take_back import lease_name

_SHOWN = ("claimed_by", "started_at", "lease_until", "token", "attempt")
_NAMED = ("experiment", "variant", "case", "target")


@dataclass(frozen=True, slots=True)
class ClaimLine:
    """One build or boot that a worker holds; over: its lease has expired, so the worker is gone or stuck.

    lease: what tells this claim from a later one. left_s: until the lease runs out, negative since it did.
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
    found = Run.objects.filter(pk=claim.id).values_list(
        "claimed_by", "experiment", "target__name", "experiment__target__name"
    )
    worker, experiment, booted_on, asked_for = found.get()
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
    now = timezone.now()
    builds = Build.objects.filter(state=BuildState.BUILDING).defer("request", "problem_detail")
    # Some hundreds of boots: their names by key, where a join would read whole tables.
    named = (
        Prefetch("experiment", Experiment.objects.only("name")),
        Prefetch("variant", Variant.objects.only("name")),
        Prefetch("case", Case.objects.only("workload", "preset")),
        Prefetch("target", Target.objects.only("name")),
    )
    runs = Run.objects.filter(state=RunState.RUNNING).prefetch_related(*named)
    held: list[tuple[str, Build | Run, str]] = [("build", build, build.commit[:12]) for build in builds]
    held += [
        ("run", run, f"{run.experiment.name}: {run.variant.name}, {run.case}")
        for run in runs.only(*_SHOWN, *_NAMED).order_by("pk")
    ]
    return tuple(
        ClaimLine(
            kind=kind,
            id=row.pk,
            label=label,
            claimed_by=row.claimed_by,
            started_at=row.started_at,
            lease_until=row.lease_until,
            over=row.lease_until is not None and row.lease_until < now,
            lease=lease_name(row.token),
            attempt=row.attempt,
            target=row.target.name if isinstance(row, Run) and row.target else "",
            left_s=(row.lease_until - now).total_seconds() if row.lease_until else 0.0,
        )
        for kind, row, label in held
    )
