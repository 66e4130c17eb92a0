# SPDX-License-Identifier: GPL-2.0-or-later
"""One Celery task per step: claim, do, record. The only place that catches everything.

`build_kernel` and `boot_kernel` do one piece of work (those of a fleet are in wakeups.py); the others keep the lab going and
are sent every so often, as upkeep.py lists them: by the loop in work.py on one machine, by Celery's beat in a fleet. Each says in the log what it did.
"""

from __future__ import annotations

import errno
import logging
import traceback
from collections.abc import Callable, Mapping

from django.conf import settings
from django.db import DatabaseError, InterfaceError, OperationalError, connection

from kernels.builds.builder import Builder
from lab.audit.log import forget_audit
from lab.hooks.deliver import deliver_due, forget_old
from lab.leases.process import worker_identity
from lab.models.states import Outcome
from lab.operations.logs import about
from lab.operations.retention import bytes_left, expire, plan_expiry
from lab.runs.claim import Claim
from lab.runs.claiming import claim_build, claim_run, release, return_dead_claims
from lab.runs.open_claims import claim_subjects
from lab.runs.pages import ended
from lab.runs.record import Failure, RunRecord, record_build_failure, record_run
from lab.runs.settle import settle_open
from lab.runs.workers import forget_workers
from lab.standing.alerts import raise_alerts, tell_alerts
from lab.standing.new_revisions import due_standings, look
from lab.storage.artifacts import artifacts_of
from lab.targets.netboot.boots import forget_old_netboots
from lab.targets.operator_mails import tell_operators
from workers.app import app
from workers.bench import make_bench
from workers.build import build_claimed
from workers.drivers.metal import MetalDriver
from workers.errors import ClaimLost
from workers.run import run_claimed
from workers.task_rules import OneAtATime, seldom

log = logging.getLogger(__name__)

HOUR_S, DAY_S = 3600.0, 86400.0


@app.task
def build_kernel(build_id: int) -> None:
    """Build one kernel, if nobody else is at it."""
    claim = claim_build(build_id, by=worker_identity())
    if claim is not None:
        guarded(
            claim, lambda: build_claimed(claim, Builder(settings.HOME, artifacts=artifacts_of(settings.HOME)))
        )
        log.info("%s", ended(claim.kind, claim.id))


@app.task
def boot_kernel(run_id: int) -> None:
    """Boot one run, if nobody else is at it."""
    claim = claim_run(run_id, by=worker_identity())
    if claim is not None:
        guarded(claim, lambda: run_claimed(claim, make_bench(settings.HOME)))
        log.info("%s", ended(claim.kind, claim.id))


@app.task(base=OneAtATime)
def return_dead() -> None:
    """Put back what processes that are gone had claimed."""
    for one in return_dead_claims():
        what = "given up" if one.given_up else "queued again"
        log.info("%s %s was left by a process that is gone: %s", one.kind, one.id, what)


@app.task(base=OneAtATime)
def settle_experiments() -> None:
    """End experiments of which nothing is open any more, as a process leaves that is killed at the wrong moment."""
    for experiment_id in settle_open():
        log.info("experiment %s is over", experiment_id)


@app.task(base=OneAtATime)
def deliver_events() -> None:
    """Tell the hooks what waits to be told."""
    for told in deliver_due():
        log.info("%s", told)


@app.task(base=OneAtATime)
@seldom(HOUR_S)
def forget_deliveries() -> None:
    """Remove deliveries that were over long ago."""
    if removed := forget_old():
        log.info("%s old deliveries removed", removed)


@app.task(base=OneAtATime)
def turn_off_left_on() -> None:
    """Turn off machines that a process that is gone had booted, and forget boots of long ago."""
    for name in MetalDriver(settings.HOME).sweep():
        log.info("%s was left on by a process that is gone: turned off", name)
    if removed := forget_old_netboots():
        log.info("%s old network boots removed", removed)


@app.task(base=OneAtATime)
@seldom(HOUR_S)
def forget_old_audit() -> None:
    """Remove what the audit log no longer keeps."""
    if removed := forget_audit():
        log.info("%s old entries of the audit log removed", removed)


@app.task(base=OneAtATime)
@seldom(HOUR_S)
def forget_silent_workers() -> None:
    """Remove the rows of workers that were silent for a day."""
    if removed := forget_workers():
        log.info("%s workers were silent for long and are forgotten", removed)


@app.task(base=OneAtATime)
@seldom(DAY_S)
def expire_files() -> Mapping[str, Mapping[str, int]]:
    """Remove what the retention policy says; returns how much is left where, by kind."""
    plan = plan_expiry()
    went = expire(plan)
    if went:
        size = sum(one.here + one.stored for one in went) / (1 << 20)
        log.info("the retention policy removed %s things, %.0f MiB", len(went), size)
    return bytes_left(plan, went)


@app.task(base=OneAtATime)
def poll_standing() -> None:
    """Look at the branches of standing experiments that are due, and queue what is new."""
    for standing_id in due_standings():
        found = look(standing_id=standing_id)
        if found is not None and (found.experiment or found.problem):
            log.info("%s", found)


@app.task(base=OneAtATime)
def raise_and_tell_alerts() -> None:
    """Look for steps in the trends of standing experiments, and tell of those that are new."""
    for alert in raise_alerts():
        log.info("alert of standing %s: %s", alert.standing.name, alert.text)
    for told in tell_alerts():
        log.info("told of %s", told)


@app.task(base=OneAtATime)
def tell_of_quarantines() -> None:
    """Send operators what they have not been told of targets in quarantine."""
    if told := tell_operators():
        log.log(logging.WARNING if told.problem else logging.INFO, "told operators: %s", told)


def guarded(claim: Claim, work: Callable[[], None]) -> None:
    """Run claimed work; a fault nobody foresaw is the lab's, kept with its traceback, never retried: but for a full disk.

    An interrupt gives the work back to the queue and goes on up.
    """
    with about(**claim_subjects(claim)):
        _caught(claim, work)


def _caught(claim: Claim, work: Callable[[], None]) -> None:
    try:
        work()
    except ClaimLost as exc:
        log.info("%s", exc)
    except (KeyboardInterrupt, SystemExit):
        _give_back(claim)
        raise
    except (OperationalError, InterfaceError) as exc:
        # Nobody could be told now. Its lease is not renewed any more, so that upkeep queues it again.
        connection.close()
        log.warning(
            "%s %s is left to its lease, the database went away: %s", claim.kind, claim.id, _line(exc)
        )
    except Exception as exc:
        log.exception("%s %s failed for a reason of ours", claim.kind, claim.id)
        full = isinstance(exc, OSError) and exc.errno in (errno.ENOSPC, errno.EDQUOT)
        problem = f"the lab {'has no room' if full else 'failed'} here: {type(exc).__name__}: {exc}"
        _record_fault(claim, " ".join(problem.split()), traceback.format_exc(), retry=full)


def _give_back(claim: Claim) -> None:
    """Queue it again at once; where the signal came into the middle of a query, over another connection."""
    try:
        release(claim)
    except DatabaseError:
        connection.close()
        try:
            release(claim)
        except DatabaseError as exc:
            log.warning("%s %s is left to its lease: %s", claim.kind, claim.id, _line(exc))


def _line(exc: Exception) -> str:
    return " ".join(str(exc).split())[:300]


def _record_fault(claim: Claim, problem: str, detail: str, *, retry: bool) -> None:
    if claim.kind == "build":
        record_build_failure(claim, Failure("lab", problem, detail, retry=retry))
    else:
        lost = RunRecord(Outcome.LOST, blame="lab", problem=problem, problem_detail=detail, retry=retry)
        record_run(claim, lost)
