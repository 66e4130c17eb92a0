# SPDX-License-Identifier: GPL-2.0-or-later
"""What a fleet's workers are woken for: the next build of a queue, the next boot of a target; and who wakes them.

A wake-up names a queue and no piece of work: whoever hears it claims what is best then, and goes on until nothing waits. So it
does not matter whether one is lost, late or doubled. They carry no expiry, since that would compare the clocks of two hosts;
instead no queue is given a second one while the first still lies there.
"""

from __future__ import annotations

import logging
from typing import Any

from django.conf import settings

from kernels.builds.builder import Builder
from lab.errors import UnknownRow
from lab.leases.process import worker_identity
from lab.models import Target
from lab.runs.claim import Claim
from lab.runs.claiming import claim_next_build, claim_next_run, next_run, release
from lab.runs.pages import ended
from lab.runs.queues import waiting_queues
from lab.runs.work_orders import run_order
from lab.storage.artifacts import artifacts_of
from workers.app import app
from workers.bench import make_bench, takes_machine_time
from workers.build import build_claimed
from workers.health import check_due
from workers.machine_turns import Turn, turn
from workers.readiness import why_idle
from workers.run import clock_of, run_claimed
from workers.task_rules import OneAtATime, Patient
from workers.tasks import guarded

log = logging.getLogger(__name__)


@app.task(base=Patient)
def build_next(queue: str) -> None:
    """Build what waits in a queue, one kernel after the other, until nothing does."""
    while _build_one(queue):
        pass


@app.task(base=Patient)
def boot_next(target: str) -> None:
    """Carry out the boots that wait for a target, one after the other, until none does."""
    while _boot_one(target):
        pass
    # With nothing else to do, it may be time to see how the machine is.
    if not why_idle(builds=False):
        check_due(target)


@app.task(base=OneAtATime)
def dispatch() -> None:
    """Wake whoever could take something that waits."""
    for name, waiting in waiting_queues().items():
        if waiting.free:
            wake(name)


def wake(queue: str) -> None:
    """Put a wake-up into a queue, unless one lies there already."""
    if not app.conf.task_always_eager and depth(queue):
        return
    kind, _, rest = queue.partition(".")
    if kind == "target":
        boot_next.apply_async((rest,), queue=queue)
    else:
        build_next.apply_async((queue,), queue=queue)


def depth(queue: str) -> int:
    """How many messages lie in a queue."""
    with app.connection_or_acquire() as connection:
        # The broker is Redis, where a queue is a list of its name.
        channel: Any = connection.default_channel
        return int(channel.client.llen(queue))


def _build_one(queue: str) -> bool:
    """Build the next kernel of a queue; False if there is none for us."""
    if why_idle(builds=True):
        return False
    with turn(settings.HOME, "shared"):
        claim = claim_next_build(queue=queue, by=worker_identity())
        if claim is None:
            return False
        held = claim
        guarded(
            held, lambda: build_claimed(held, Builder(settings.HOME, artifacts=artifacts_of(settings.HOME)))
        )
        log.info("%s", ended(held.kind, held.id))
    return True


def _boot_one(target: str) -> bool:
    """Carry out the next boot of a target; False if there is none for us."""
    if why_idle(builds=False):
        return False
    run_id = next_run(target=target)
    if run_id is None:
        return False
    how = _turn_of(run_id, target)
    with turn(settings.HOME, how):
        claim = claim_next_run(target=target, by=worker_identity())
        if claim is None:
            return False
        if how != "alone" and _turn_of(claim.id, target) != how:
            # While we waited, another went to the front, which wants the machine otherwise.
            release(claim)
            return True
        _boot(claim)
    return True


def _boot(claim: Claim) -> None:
    guarded(claim, lambda: run_claimed(claim, make_bench(settings.HOME)))
    log.info("%s", ended(claim.kind, claim.id))


def _turn_of(run_id: int, target: str) -> Turn:
    """How much of this machine a boot takes; it is "alone" that is safe where the run cannot be read."""
    driver = Target.objects.filter(name=target).values_list("driver", flat=True).first() or ""
    if not takes_machine_time(driver):
        return "free"
    try:
        return "shared" if clock_of(run_order(run_id)) == "instructions" else "alone"
    except UnknownRow:
        return "alone"
