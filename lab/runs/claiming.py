# SPDX-License-Identifier: GPL-2.0-or-later
"""Claim builds and boots: one process at a time, with a lease.

The database holds the truth. A claim is one conditional UPDATE that only one process wins; it
carries a lease, renewed while the work goes on, and a token. Everything written about the work
names the token, so an answer that arrives after the claim was returned to the queue writes nothing.

Workers take the next piece with `claim_next_build` and `claim_next_run`; lab/runs/order.py says which is next.
"""

from __future__ import annotations

import secrets
from itertools import islice
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from lab.errors import UnknownRow
from lab.leases.clock import after
from lab.models import Build, Experiment, Run, Target
from lab.models.states import BuildState, ExperimentState, RunState, move
from lab.runs.blocks import take_block
from lab.runs.claim import Claim
from lab.runs.order import TRIED, ready_builds, ready_runs
from lab.targets.usable import usable_targets

# What a claim has to know of a run; descriptions may be megabytes.
_PLACE = ("state", "purpose", "block", "target", "lost_on", "experiment__group", "experiment__target")


def lease_seconds() -> float:
    """Return how long a claim lasts without a sign of life."""
    return float(getattr(settings, "LEASE_S", 15.0))


def next_build(experiment_id: int | None = None, *, queue: str | None = None) -> int | None:
    """Return the build to make next, None if none waits; queue: of one queue alone. Within an experiment its base first."""
    return next(ready_builds(queue, experiment_id), None)


def next_run(experiment_id: int | None = None, *, target: str | None = None) -> int | None:
    """Return the run to boot next, None if none is ready; target: for one target alone.

    A target that boots already still has a next run.
    """
    if target is None:
        return next(ready_runs(None, experiment_id), None)
    row = usable_targets().filter(name=target).first()
    return None if row is None else next(ready_runs(row, experiment_id), None)


def is_worked_on(experiment_id: int) -> bool:
    """Return whether anybody is at a build or a boot of an experiment now."""
    builds = Build.objects.filter(state=BuildState.BUILDING, variants__experiment=experiment_id)
    return builds.exists() or Run.objects.filter(state=RunState.RUNNING, experiment=experiment_id).exists()


def ready_targets(experiment_id: int | None = None) -> list[str]:
    """Return the names of targets that have a boot ready, the target of the best boot first."""
    best = list(islice(ready_runs(None, experiment_id), TRIED))
    if not best:
        return []
    found = {
        row.name: next(ready_runs(row, experiment_id), None) for row in usable_targets().order_by("name")
    }
    rank = {run_id: place for place, run_id in enumerate(best)}
    return sorted(filter(found.get, found), key=lambda name: rank.get(found[name] or 0, TRIED))


def claim_next_build(
    *, by: str, queue: str | None = None, experiment_id: int | None = None, lease_s: float | None = None
) -> Claim | None:
    """Claim the next build of a queue, or of any; None if none waits."""
    for build_id in islice(ready_builds(queue, experiment_id), TRIED):
        claim = claim_build(build_id, by=by, lease_s=lease_s)
        if claim is not None:
            return claim
    return None


def claim_next_run(
    *, target: str, by: str, experiment_id: int | None = None, lease_s: float | None = None
) -> Claim | None:
    """Claim the next run for a target; None if none is ready, or it boots another, or it may not boot.

    Raises UnknownRow where there is no such target.
    """
    with transaction.atomic():
        # Locking the target's row makes claims of one target queue up; SQLite has one writer anyway.
        row = Target.objects.select_for_update().filter(name=target).first()
        if row is None:
            raise UnknownRow(f'there is no target "{target}"')
        if not _may_boot(row):
            return None
        for run_id in islice(ready_runs(row, experiment_id), TRIED):
            claim = _take(run_id, row, by, lease_s)
            if claim is not None:
                return claim
    return None


def claim_build(build_id: int, *, by: str, lease_s: float | None = None) -> Claim | None:
    """Claim a queued build; None if another process has it or it no longer waits."""
    claim = Claim("build", build_id, secrets.token_hex(16))
    with transaction.atomic():
        if _is_locked(build_id):
            return None
        taken = _taken(claim, by, lease_s) | {"steps_done": 0, "steps_expected": 0}
        if not move(Build, build_id, BuildState.QUEUED, BuildState.BUILDING, **taken):
            return None
        _start(Experiment.objects.filter(variants__build=build_id))
    return claim


def _is_locked(build_id: int) -> bool:
    """Return whether somebody is claiming it this moment: to wait for that would be to wait for nothing."""
    free = Build.objects.select_for_update(skip_locked=True).filter(pk=build_id, state=BuildState.QUEUED)
    return not free.exists()


def _may_boot(target: Target) -> bool:
    """Return whether a locked target is usable and boots nothing now, no health check either."""
    checked = target.checked_until is not None and target.checked_until > timezone.now()
    usable = target.enabled and target.quarantined_at is None and not checked
    return usable and not Run.objects.filter(target=target, state=RunState.RUNNING).exists()


def _take(run_id: int, target: Target, by: str, lease_s: float | None) -> Claim | None:
    """Claim a run for a target whose row is locked."""
    run = Run.objects.select_related("experiment").only(*_PLACE).get(pk=run_id)
    if run.target_id not in (None, target.pk):
        return None
    if run.experiment.group and run.target_id is None and not take_block(run, target):
        return None
    claim = Claim("run", run_id, secrets.token_hex(16), target.name)
    taken = _taken(claim, by, lease_s) | {"target": target, "lost_on": None, "lost_at": None}
    if not move(Run, run_id, RunState.QUEUED, RunState.RUNNING, **taken):
        return None
    _start(Experiment.objects.filter(pk=run.experiment_id))
    return claim


def renew(claim: Claim, *, lease_s: float | None = None) -> bool:
    """Lengthen the lease; False when the claim was taken back, and the work should stop."""
    return _held(claim).update(lease_until=after(lease_s or lease_seconds())) == 1


def is_held(claim: Claim) -> bool:
    """Return whether the claim stands; a look, which costs less than renewing it."""
    return _held(claim).exists()


def _held(claim: Claim) -> QuerySet[Build] | QuerySet[Run]:
    if claim.kind == "build":
        return Build.objects.filter(pk=claim.id, token=claim.token, state=BuildState.BUILDING)
    return Run.objects.filter(pk=claim.id, token=claim.token, state=RunState.RUNNING)


def _start(experiments: QuerySet[Experiment]) -> None:
    """The first claim of its work is what starts an experiment."""
    for pk in experiments.filter(state=ExperimentState.QUEUED).values_list("pk", flat=True).distinct():
        move(Experiment, pk, ExperimentState.QUEUED, ExperimentState.RUNNING, started_at=timezone.now())


def _taken(claim: Claim, by: str, lease_s: float | None) -> dict[str, Any]:
    return {
        "claimed_by": by,
        "token": claim.token,
        "lease_until": after(lease_s or lease_seconds()),
        "started_at": timezone.now(),
        "finished_at": None,
        "attempt": F("attempt") + 1,
    }
