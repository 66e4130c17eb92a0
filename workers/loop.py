# SPDX-License-Identifier: GPL-2.0-or-later
"""The loop of every worker: claim the next piece of work, run it, record it, until nothing is left for this worker.

Only what wakes it differs. A fleet's workers are woken by a Celery message that names a queue (wakeups.py); one machine's worker
polls the tables (work.py), and so does a command that carries out one experiment (local.py). This is also the only place that
catches every exception of the work.
"""

import errno
import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import sleep

from django.conf import settings
from django.db import DatabaseError, InterfaceError, OperationalError, connection

from kernels.builds.builder import Builder
from lab.errors import UnknownRow
from lab.leases.process import worker_identity
from lab.models import Target
from lab.models.states import Outcome
from lab.one_line import error_line
from lab.operations.logs import about
from lab.runs.claim import Claim
from lab.runs.claiming import claim_next_build, claim_next_run
from lab.runs.hand_back import release
from lab.runs.open_claims import claim_subjects
from lab.runs.order import next_run, ready_targets
from lab.runs.pages import ended
from lab.runs.record import Failure, RunRecord, record_build_failure, record_run
from lab.runs.work_orders import run_order
from lab.storage.artifacts import artifacts_of
from lab.targets.drivers import is_guest
from lab.targets.health_checks import due_checks
from workers.bench import make_bench
from workers.build import build_claimed
from workers.errors import ClaimLost, TargetUnready
from workers.health import check_due
from workers.machine_turns import Turn, turn
from workers.readiness import spare_for_builds, why_idle
from workers.run import clock_of, run_claimed

log = logging.getLogger(__name__)
# A pause after a full disk before this worker takes work again: without it three tries took a tenth of a second, and the work was given up.
NO_ROOM_S = 10.0
# The same for a target that can boot nothing, as while libvirt restarts: three tries put it into quarantine.
UNREADY_S = 5.0


@dataclass(frozen=True, slots=True)
class Scope:
    """The work that a worker takes.

    queue: take only builds of this queue. target: take only boots of this target. experiment_id: take only work of this
    experiment. None sets no limit.
    """

    builds: bool = True
    boots: bool = True
    queue: str | None = None
    target: str | None = None
    experiment_id: int | None = None


def take_all(scope: Scope) -> None:
    """Take one piece of work after the other until nothing is left for this worker."""
    while take_one(scope):
        pass


def take_one(scope: Scope) -> bool:
    """Build the next kernel, or carry out the next boot, or a health check; return False if there is nothing to do.

    Builds come first, since a boot is timed and nothing may compile beside it.
    """
    if scope.builds and not why_idle(builds=True):
        with turn(settings.HOME, "shared"):
            claim = claim_next_build(
                queue=scope.queue, by=worker_identity(), experiment_id=scope.experiment_id
            )
            if claim is not None:
                builder = Builder(
                    settings.HOME,
                    artifacts=artifacts_of(settings.HOME),
                    front=settings.FRONT,
                    spare=spare_for_builds(settings.HOME),
                )
                with _guarded(claim):
                    build_claimed(claim, builder)
                return True
    if not scope.boots or why_idle(builds=False):
        return False
    for target in [scope.target] if scope.target else ready_targets(scope.experiment_id):
        with _claimed_boot(target, scope.experiment_id) as claim:
            if claim is not None:
                with _guarded(claim):
                    run_claimed(claim, make_bench(settings.HOME))
                return True
    due = [scope.target] if scope.target else due_checks()
    return scope.experiment_id is None and any(map(check_due, due))


@contextmanager
def _claimed_boot(target: str, experiment_id: int | None) -> Iterator[Claim | None]:
    """Claim the next boot of a target, and the turn that it needs; None if no boot is ready or another worker has the target."""
    driver = Target.objects.filter(name=target).values_list("driver", flat=True).first()
    while driver is not None:
        how: Turn = "free"
        if is_guest(driver):
            run_id = next_run(experiment_id, target=target)
            if run_id is None:
                break
            how = _turn_of(run_id)
        with turn(settings.HOME, how):
            claim = claim_next_run(target=target, by=worker_identity(), experiment_id=experiment_id)
            if claim is None or how != "shared" or _turn_of(claim.id) == how:
                yield claim
                return
            # While this worker waited, another run came first that needs the machine in another way.
            release(claim)
    yield None


def _turn_of(run_id: int) -> Turn:
    """Return how much of this machine a guest's boot takes: "alone", the safe one, where the run cannot be read."""
    try:
        return "alone" if clock_of(run_order(run_id)) == "wall" else "shared"
    except UnknownRow:
        return "alone"


@contextmanager
def _guarded(claim: Claim) -> Iterator[None]:
    """Guard claimed work. An unforeseen fault is the lab's: kept with its traceback, and retried only where the disk is full.

    An interrupt returns the work to the queue, and is raised again.
    """
    with about(**claim_subjects(claim)), _recorded(claim):
        yield
    log.info("%s", ended(claim.kind, claim.id))


@contextmanager
def _recorded(claim: Claim) -> Iterator[None]:
    try:
        yield
    except ClaimLost as exc:
        log.info("%s", exc)
    except TargetUnready:
        sleep(UNREADY_S)
    except (KeyboardInterrupt, SystemExit):
        _give_back(claim)
        raise
    except (OperationalError, InterfaceError) as exc:
        # Nothing can be recorded now. The lease is not renewed any more, so that upkeep queues the work again.
        connection.close()
        log.warning(
            "%s %s is left to its lease, the database went away: %s", claim.kind, claim.id, error_line(exc)
        )
    except Exception as exc:
        log.exception("%s %s failed, by the lab's fault", claim.kind, claim.id)
        full = isinstance(exc, OSError) and exc.errno in (errno.ENOSPC, errno.EDQUOT)
        problem = f"the lab {'has no room' if full else 'failed'} here: {type(exc).__name__}: {exc}"
        _record_fault(claim, " ".join(problem.split()), traceback.format_exc(), retry=full)
        if full:
            sleep(NO_ROOM_S)


def _give_back(claim: Claim) -> None:
    """Queue the work again at once; over another connection if the signal interrupted a query."""
    try:
        release(claim)
    except DatabaseError:
        connection.close()
        try:
            release(claim)
        except DatabaseError as exc:
            log.warning("%s %s is left to its lease: %s", claim.kind, claim.id, error_line(exc))


def _record_fault(claim: Claim, problem: str, detail: str, *, retry: bool) -> None:
    if claim.kind == "build":
        record_build_failure(claim, Failure("lab", problem, detail, retry=retry))
    else:
        lost = RunRecord(Outcome.LOST, blame="lab", problem=problem, problem_detail=detail, retry=retry)
        record_run(claim, lost)
