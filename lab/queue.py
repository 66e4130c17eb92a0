# SPDX-License-Identifier: GPL-2.0-or-later
"""Who works on what: each build and each boot is claimed by one process at a time.

The database holds the truth. A claim is one conditional UPDATE that only one process wins; it
carries a lease, renewed while the work goes on, and a token. Everything written about the work
names the token, so an answer that arrives after the claim was returned to the queue writes nothing.

In one process: `return_dead_claims()` at the start, then while there is something,
`next_build` before `next_run`: boots are not timed while the same experiment compiles.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet
from django.utils import timezone

from lab.claims import MOST_ATTEMPTS, UNCLAIMED, Claim, Kind, is_alive, worker_identity
from lab.models import Build, Experiment, Run, Target
from lab.record import Failure, RunRecord, record_build_failure, record_run
from lab.states import BuildState, ExperimentState, Outcome, RunState, VariantState, move

__all__ = [
    "Claim",
    "Returned",
    "claim_build",
    "claim_run",
    "is_alive",
    "next_build",
    "next_run",
    "release",
    "renew",
    "return_dead_claims",
    "worker_identity",
]

LEASE_S = 120.0
ACTIVE = (ExperimentState.QUEUED, ExperimentState.RUNNING)
OPEN_BUILD = (BuildState.QUEUED, BuildState.BUILDING)


@dataclass(frozen=True, slots=True)
class Returned:
    """Work taken back from a process that is gone; given_up tells that it is not tried again."""

    kind: Kind
    id: int
    claimed_by: str
    given_up: bool


def next_build(experiment_id: int | None = None) -> int | None:
    """Return the build to make next, None if none waits: oldest experiment first, its base first."""
    # One filter call: both conditions are about the same variant.
    own = {} if experiment_id is None else {"variants__experiment": experiment_id}
    waiting = Build.objects.filter(state=BuildState.QUEUED, variants__experiment__state__in=ACTIVE, **own)
    ordered = waiting.order_by("variants__experiment_id", "variants__position")
    return ordered.values_list("pk", flat=True).first()


def next_run(experiment_id: int | None = None) -> int | None:
    """Return the run to boot next, None if none is ready: in the order the blocks were shuffled.

    A run is ready when its variant is and nothing of its experiment is left to build.
    """
    building = Build.objects.filter(variants__experiment=OuterRef("experiment"), state__in=OPEN_BUILD)
    ready = Run.objects.filter(
        ~Exists(building),
        state=RunState.QUEUED,
        experiment__state__in=ACTIVE,
        variant__state=VariantState.READY,
        variant__build__state=BuildState.BUILT,
    )
    if experiment_id is not None:
        ready = ready.filter(experiment=experiment_id)
    return ready.order_by("experiment_id", "position").values_list("pk", flat=True).first()


def claim_build(build_id: int, *, by: str, lease_s: float = LEASE_S) -> Claim | None:
    """Claim a queued build; None if another process has it or it no longer waits."""
    claim = Claim("build", build_id, secrets.token_hex(16))
    with transaction.atomic():
        if not move(Build, build_id, BuildState.QUEUED, BuildState.BUILDING, **_taken(claim, by, lease_s)):
            return None
        _start(Experiment.objects.filter(variants__build=build_id))
    return claim


def claim_run(run_id: int, *, by: str, lease_s: float = LEASE_S) -> Claim | None:
    """Claim a queued run; None if it no longer waits or its target is booting another."""
    claim = Claim("run", run_id, secrets.token_hex(16))
    with transaction.atomic():
        # Locking the target's row makes claims of one target queue up; SQLite has one writer anyway.
        target = Target.objects.select_for_update().filter(experiment__runs=run_id).first()
        if Run.objects.filter(experiment__target=target, state=RunState.RUNNING).exists():
            return None
        if not move(Run, run_id, RunState.QUEUED, RunState.RUNNING, **_taken(claim, by, lease_s)):
            return None
        _start(Experiment.objects.filter(runs=run_id))
    return claim


def renew(claim: Claim, *, lease_s: float = LEASE_S) -> bool:
    """Lengthen the lease; False when the claim was taken back, and the work should stop."""
    held: QuerySet[Build] | QuerySet[Run]
    if claim.kind == "build":
        held = Build.objects.filter(pk=claim.id, token=claim.token, state=BuildState.BUILDING)
    else:
        held = Run.objects.filter(pk=claim.id, token=claim.token, state=RunState.RUNNING)
    return held.update(lease_until=_until(lease_s)) == 1


def release(claim: Claim) -> bool:
    """Give unfinished work back to the queue, as at Ctrl-C; False if it was not held any more.

    It does not count as an attempt: nothing is wrong with the work.
    """
    return _put_back(claim, attempt=F("attempt") - 1)


def _put_back(claim: Claim, **fields: Any) -> bool:
    fields |= UNCLAIMED
    if claim.kind == "build":
        return move(Build, claim.id, BuildState.BUILDING, BuildState.QUEUED, held=claim.token, **fields)
    return move(Run, claim.id, RunState.RUNNING, RunState.QUEUED, held=claim.token, **fields)


def return_dead_claims(alive: Callable[[str], bool] = is_alive) -> list[Returned]:
    """Put work back whose lease ran out or whose process `alive` denies; returns what was taken back.

    Work that was tried MOST_ATTEMPTS times fails instead, with blame on the lab.
    """
    now = timezone.now()
    held: list[tuple[Kind, Build | Run]] = [
        ("build", build) for build in Build.objects.filter(state=BuildState.BUILDING).defer("request")
    ]
    held += [("run", run) for run in Run.objects.filter(state=RunState.RUNNING)]
    returned = []
    for kind, row in held:
        if row.lease_until and row.lease_until > now and alive(row.claimed_by):
            continue
        claim = Claim(kind, row.pk, row.token)
        given_up = row.attempt >= MOST_ATTEMPTS
        if _give_up(claim, row.attempt) if given_up else _put_back(claim):
            returned.append(Returned(kind, row.pk, row.claimed_by, given_up))
    return returned


def _give_up(claim: Claim, attempts: int) -> bool:
    problem = f"its worker died {attempts} times while at it; see the worker's own log"
    if claim.kind == "build":
        return record_build_failure(claim, Failure("lab", problem))
    return record_run(claim, RunRecord(outcome=Outcome.LOST, blame="lab", problem=problem))


def _start(experiments: QuerySet[Experiment]) -> None:
    """The first claim of its work is what starts an experiment."""
    for pk in experiments.filter(state=ExperimentState.QUEUED).values_list("pk", flat=True).distinct():
        move(Experiment, pk, ExperimentState.QUEUED, ExperimentState.RUNNING, started_at=timezone.now())


def _taken(claim: Claim, by: str, lease_s: float) -> dict[str, Any]:
    return {
        "claimed_by": by,
        "token": claim.token,
        "lease_until": _until(lease_s),
        "started_at": timezone.now(),
        "finished_at": None,
        "attempt": F("attempt") + 1,
    }


def _until(lease_s: float) -> datetime:
    return timezone.now() + timedelta(seconds=lease_s)
