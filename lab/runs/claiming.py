# SPDX-License-Identifier: GPL-2.0-or-later
"""Claim builds and boots: one process at a time, with a lease.

The database holds the truth. A claim is one conditional UPDATE that only one process wins; it
carries a lease, renewed while the work goes on, and a token. Everything written about the work
names the token, so an answer that arrives after the claim was returned to the queue writes nothing.

Workers take the next piece with `claim_next_build` and `claim_next_run`; lab/runs/order.py says which is next. On PostgreSQL
that is one statement, which finds the piece, skips what others are claiming, and fills in everything.
"""

import secrets
from functools import cache
from typing import Any

from django.conf import settings
from django.db import IntegrityError, OperationalError, connection, transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from lab.errors import UnknownRow, one_row
from lab.leases.deadlocks import is_deadlock
from lab.leases.prepared import after, run_prepared
from lab.models import Build, Experiment, Run, Target
from lab.models.states import BuildState, ExperimentState, RunState, move
from lab.runs.blocks import take_block
from lab.runs.claim import Claim
from lab.runs.order import boot_to_claim, build_to_claim, next_build_and_submitter, next_run

# The columns that a claim needs of a run; descriptions may be megabytes.
_PLACE = ("state", "purpose", "block", "target", "lost_on", "experiment__group", "experiment__target")
# The columns that a claim on PostgreSQL writes.
_TAKEN = {
    "claimed_by": "%(by)s",
    "token": "%(token)s",
    "lease_until": "now() + make_interval(secs => %(lease)s)",
    "started_at": "now()",
    "finished_at": "NULL",
    "attempt": "r.attempt + 1",
}
# Each worker that is at work asks every two seconds whether its claim stands.
_STANDS = {
    "build": "lab_build {} WHERE id = %(id)s AND token = %(token)s AND state = 'building'",
    "run": "lab_run {} WHERE id = %(id)s AND token = %(token)s AND state = 'running'",
}
_LONGER = "SET lease_until = statement_timestamp() + make_interval(secs => %(lease)s)"
_RUNS = {"state": "'running'", "lost_on_id": "NULL", "lost_at": "NULL", **_TAKEN}
_BUILDS = {
    "state": "'building'",
    "steps_done": "0",
    "steps_expected": "0",
    "steps_since": "NULL",
    "charged_to": "f.who",
    **_TAKEN,
}


def lease_seconds() -> float:
    """Return how long a claim lasts without a sign of life."""
    return float(getattr(settings, "LEASE_S", 15.0))


def is_worked_on(experiment_id: int) -> bool:
    """Return whether a worker has a build or a boot of an experiment now."""
    builds = Build.objects.filter(state=BuildState.BUILDING, variants__experiment=experiment_id)
    return builds.exists() or Run.objects.filter(state=RunState.RUNNING, experiment=experiment_id).exists()


def claim_next_build(*, by: str, queue: str | None = None, experiment_id: int | None = None) -> Claim | None:
    """Claim the next build of a queue, or of any; None if none waits."""
    if connection.vendor == "postgresql":
        text = _build_claim(queue is not None, experiment_id is not None)
        token = secrets.token_hex(16)
        rows = _claim_at_once(text, by, token, queue=queue, experiment=experiment_id)
        for build_id, unbegun in rows:
            if unbegun is not None:
                _start(Experiment.objects.filter(variants__build=build_id))
            return Claim("build", build_id, token)
        return None
    while (pair := next_build_and_submitter(experiment_id, queue=queue)) is not None:
        build_id, submitter = pair
        claim = claim_build(build_id, by=by, charged_to=submitter)
        if claim is not None:
            return claim
    return None


def claim_next_run(*, target: str, by: str, experiment_id: int | None = None) -> Claim | None:
    """Claim the next run for a target. Return None if no run is ready, or if the target is booting or may not boot.

    Raises UnknownRow where there is no such target.
    """
    if connection.vendor == "postgresql":
        token = secrets.token_hex(16)
        text = _run_claim(experiment_id is not None)
        try:
            rows = _claim_at_once(text, by, token, target=target, experiment=experiment_id)
        except IntegrityError:
            # A second process for this target was faster: it boots one kernel at a time.
            return None
        except OperationalError as exc:
            # Of two at the very same moment the database may end one.
            if is_deadlock(exc):
                return None
            raise
        if not rows and not Target.objects.filter(name=target).exists():
            raise UnknownRow(f'there is no target "{target}"')
        if not rows:
            return None
        for run_id, taken, unbegun in rows:
            if taken:
                if unbegun is not None:
                    _start_one(unbegun)
                return Claim("run", run_id, token, target)
    return _claim_in_steps(target, by, experiment_id)


def _claim_in_steps(target: str, by: str, experiment_id: int | None) -> Claim | None:
    """Claim the next run on SQLite, or, on PostgreSQL, the first of a block that has moved."""
    with transaction.atomic():
        # Locking the target's row makes claims of one target queue up; SQLite has one writer anyway.
        row = one_row(Target.objects.select_for_update().filter(name=target), f'target "{target}"')
        if not _may_boot(row):
            return None
        while (run_id := next_run(experiment_id, target=target)) is not None:
            claim = _take(run_id, row, by)
            if claim is not None:
                return claim
    return None


def _claim_at_once(text: str, by: str, token: str, **wanted: str | int | None) -> list[Any]:
    """Run a claim of one statement; return the rows that it wrote, none if there was nothing to claim."""
    return run_prepared(text, {"by": by, "token": token, "lease": lease_seconds(), **wanted})


@cache
def _run_claim(one_experiment: bool) -> str:
    """Return the claim of a run, and of the rest of its block where that is unassigned.

    A block with boots on another target has moved: those must be repeated, which takes more than one statement, so its
    run is returned unclaimed.
    """
    fresh = "b.shared AND b.target_id IS NULL"
    block = "x.experiment_id = b.experiment_id AND x.block = b.block AND x.purpose = b.purpose"
    written = ", ".join(
        f"{name} = CASE WHEN r.id = f.id THEN {to} ELSE r.{name} END" for name, to in _RUNS.items()
    )
    return f"""WITH {boot_to_claim(one_experiment)},
found AS MATERIALIZED (
  SELECT b.experiment_id, b.place, b.state, b.id AS first,
    CASE WHEN {fresh} AND (SELECT 1 FROM lab_run x WHERE {block} AND x.target_id <> b.place LIMIT 1) IS NOT NULL
      THEN NULL ELSE b.id END AS id,
    CASE WHEN {fresh} THEN (SELECT array_agg(x.id) FROM lab_run x WHERE {block}
      AND x.state = 'queued' AND x.target_id IS NULL) ELSE ARRAY[b.id] END AS ids
  FROM best b)
UPDATE lab_run r SET target_id = CASE WHEN f.id IS NULL THEN r.target_id ELSE f.place END, {written}
FROM found f WHERE r.id = ANY(f.ids)
RETURNING r.id, r.id = f.id, CASE WHEN f.state = 'queued' THEN r.experiment_id END"""  # noqa: S608  our names


@cache
def _build_claim(one_queue: bool, one_experiment: bool) -> str:
    written = ", ".join(f"{name} = {to}" for name, to in _BUILDS.items())
    return f"""WITH RECURSIVE {build_to_claim(one_queue, one_experiment)}
UPDATE lab_build r SET {written}
FROM best f WHERE r.id = f.id RETURNING r.id, (
  SELECT 1 FROM lab_variant v JOIN lab_experiment e ON e.id = v.experiment_id
  WHERE v.build_id = r.id AND e.state = 'queued' LIMIT 1)"""  # noqa: S608  our names


def claim_build(build_id: int, *, by: str, lease_s: float | None = None, charged_to: int = 0) -> Claim | None:
    """Claim a queued build; None if another process has it or it no longer waits. charged_to: a submitter, 0 for nobody."""
    claim = Claim("build", build_id, secrets.token_hex(16))
    with transaction.atomic():
        taken = _taken(claim, by, lease_s) | {
            "steps_done": 0,
            "steps_expected": 0,
            "steps_since": None,
            "charged_to": charged_to,
        }
        if not move(Build, build_id, BuildState.QUEUED, BuildState.BUILDING, **taken):
            return None
        _start(Experiment.objects.filter(variants__build=build_id))
    return claim


def _may_boot(target: Target) -> bool:
    """Return whether a locked target is usable and boots nothing now, no health check either."""
    checked = (
        target.checked_until is not None
        and Target.objects.filter(pk=target.pk, checked_until__gt=after(0.0)).exists()
    )
    usable = target.enabled and target.quarantined_at is None and not checked
    return usable and not Run.objects.filter(target=target, state=RunState.RUNNING).exists()


def _take(run_id: int, target: Target, by: str, lease_s: float | None = None) -> Claim | None:
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
    if connection.vendor == "postgresql":
        text = f"UPDATE {_STANDS[claim.kind]} RETURNING 1"
        return bool(
            run_prepared(text.format(_LONGER), {**_proof(claim), "lease": lease_s or lease_seconds()})
        )
    return held(claim).update(lease_until=after(lease_s or lease_seconds())) == 1


def is_held(claim: Claim) -> bool:
    """Return whether the claim stands; reading it costs less than renewing it."""
    if connection.vendor == "postgresql":
        return bool(run_prepared(f"SELECT 1 FROM {_STANDS[claim.kind].format('')}", _proof(claim)))  # noqa: S608  our names
    return held(claim).exists()


def _proof(claim: Claim) -> dict[str, str | int]:
    return {"id": claim.id, "token": claim.token}


def held(claim: Claim) -> QuerySet[Build] | QuerySet[Run]:
    """Return the row of a claim as long as it is held; nothing once it was taken back."""
    if claim.kind == "build":
        return Build.objects.filter(pk=claim.id, token=claim.token, state=BuildState.BUILDING)
    return Run.objects.filter(pk=claim.id, token=claim.token, state=RunState.RUNNING)


def _start(experiments: QuerySet[Experiment]) -> None:
    """Start experiments that are queued, at the first claim of their work."""
    for pk in experiments.filter(state=ExperimentState.QUEUED).values_list("pk", flat=True).distinct():
        _start_one(pk)


def _start_one(experiment_id: int) -> None:
    now = timezone.now()
    move(Experiment, experiment_id, ExperimentState.QUEUED, ExperimentState.RUNNING, started_at=now)


def _taken(claim: Claim, by: str, lease_s: float | None) -> dict[str, Any]:
    return {
        "claimed_by": by,
        "token": claim.token,
        "lease_until": after(lease_s or lease_seconds()),
        "started_at": timezone.now(),
        "finished_at": None,
        "attempt": F("attempt") + 1,
    }
