# SPDX-License-Identifier: GPL-2.0-or-later
"""The chores that keep the lab going, as often as upkeep.py says; each logs what it did.

One machine's worker (work.py) calls them in its own process; a fleet's beat sends them as Celery messages.
"""

import logging
from collections.abc import Mapping

from django.conf import settings

from lab.audit.log import forget_audit
from lab.bisections.from_trend import advance_bisections
from lab.hooks.deliver import deliver_due, forget_old
from lab.operations.retention import bytes_left, expire, plan_expiry
from lab.runs.expired_claims import return_dead_claims
from lab.runs.settle import settle_open
from lab.runs.workers import forget_workers
from lab.standing.alerts import raise_alerts, tell_alerts
from lab.standing.new_revisions import due_standings, look
from lab.targets.netboot.boots import forget_old_netboots
from lab.targets.operator_mails import tell_operators
from lab.trends.summary import refresh_trends
from workers.app import app
from workers.drivers.metal import MetalDriver
from workers.task_rules import OneAtATime, seldom

log = logging.getLogger(__name__)

HOUR_S, DAY_S = 3600.0, 86400.0


@app.task(base=OneAtATime)
def return_dead() -> None:
    """Requeue what dead processes had claimed."""
    for claim in return_dead_claims():
        what = "given up" if claim.given_up else "queued again"
        by = claim.claimed_by
        log.info("%s %s was lost by %s, which is gone or stalled: %s", claim.kind, claim.id, by, what)


@app.task(base=OneAtATime)
def settle_experiments() -> None:
    """End experiments whose work is all over; a process that is killed at the wrong moment leaves them open."""
    for experiment_id in settle_open():
        log.info("experiment %s is over", experiment_id)


@app.task(base=OneAtATime)
def summarise_trends() -> None:
    """Compute the summaries of trends whose points have changed, so that no list has to."""
    if number := refresh_trends():
        log.info("%s trends summarised", number)


@app.task(base=OneAtATime)
def deliver_events() -> None:
    """Deliver waiting events to their hooks."""
    for attempt in deliver_due():
        log.info("%s", attempt)


@app.task(base=OneAtATime)
@seldom(HOUR_S)
def forget_deliveries() -> None:
    """Remove deliveries that were over long ago."""
    if removed := forget_old():
        log.info("%s old deliveries removed", removed)


@app.task(base=OneAtATime)
def turn_off_left_on() -> None:
    """Turn off machines that a dead process had booted, and remove old network boots."""
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
    """Remove the files that the retention policy names; returns the bytes left, by place and kind."""
    plan = plan_expiry()
    went = expire(plan)
    if went:
        size = sum(holding.here + holding.stored for holding in went) / (1 << 20)
        log.info("the retention policy removed %s things, %.0f MiB", len(went), size)
    return bytes_left(plan, went)


@app.task(base=OneAtATime)
def poll_standing() -> None:
    """Look at the branches of standing experiments that are due, and queue what is new."""
    for standing_id in due_standings():
        outcome = look(standing_id=standing_id)
        if outcome is not None and (outcome.experiment or outcome.problem):
            log.info("%s", outcome)


@app.task(base=OneAtATime)
def advance_automatic_bisections() -> None:
    """Carry out the bisections that were started on a page, a step at a time."""
    for line in advance_bisections():
        log.info("%s", line)


@app.task(base=OneAtATime)
def raise_and_tell_alerts() -> None:
    """Look for steps in the trends of standing experiments, and report those that are new."""
    for alert in raise_alerts():
        log.info("alert of standing %s: %s", alert.standing.name, alert.text)
    for telling in tell_alerts():
        log.info("told of %s", telling)


@app.task(base=OneAtATime)
def tell_of_quarantines() -> None:
    """Mail operators the changes of quarantine that have not been reported yet."""
    if notices := tell_operators():
        log.log(logging.WARNING if notices.problem else logging.INFO, "told operators: %s", notices)
