# SPDX-License-Identifier: GPL-2.0-or-later
"""One Celery task per step: claim, do, record. The only place that catches everything."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable

from django.conf import settings

from kernels.build import Builder
from lab.claims import Claim, worker_identity
from lab.queue import claim_build, claim_run, release
from lab.record import Failure, RunRecord, record_build_failure, record_run
from lab.states import Outcome
from workers.app import app
from workers.bench import make_bench
from workers.build import build_claimed
from workers.errors import ClaimLost
from workers.run import run_claimed

log = logging.getLogger(__name__)


@app.task
def build_kernel(build_id: int) -> None:
    """Build one kernel, if nobody else is at it."""
    claim = claim_build(build_id, by=worker_identity())
    if claim is not None:
        _guarded(claim, lambda: build_claimed(claim, Builder(settings.HOME)))


@app.task
def boot_kernel(run_id: int) -> None:
    """Boot one run, if nobody else is at it."""
    claim = claim_run(run_id, by=worker_identity())
    if claim is not None:
        _guarded(claim, lambda: run_claimed(claim, make_bench(settings.HOME)))


def _guarded(claim: Claim, work: Callable[[], None]) -> None:
    """Run the work; a fault nobody foresaw is the lab's, kept with its traceback, never retried.

    An interrupt gives the work back to the queue and goes on up.
    """
    try:
        work()
    except ClaimLost as exc:
        log.info("%s", exc)
    except (KeyboardInterrupt, SystemExit):
        release(claim)
        raise
    except Exception as exc:
        log.exception("%s %s failed for a reason of ours", claim.kind, claim.id)
        problem = f"the lab failed here: {type(exc).__name__}: {exc}"
        _record_fault(claim, " ".join(problem.split()), traceback.format_exc())


def _record_fault(claim: Claim, problem: str, detail: str) -> None:
    if claim.kind == "build":
        record_build_failure(claim, Failure("lab", problem, detail))
    else:
        record_run(claim, RunRecord(Outcome.LOST, blame="lab", problem=problem, problem_detail=detail))
