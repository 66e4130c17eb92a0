# SPDX-License-Identifier: GPL-2.0-or-later
"""Return claims whose process is gone: by their lease, or at once where the process is known to be dead."""

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any

from django.db.models import Q

from lab.leases.prepared import after
from lab.leases.process import is_alive
from lab.models import Build, LostClaim, Run
from lab.models.states import BuildState, Outcome, RunState
from lab.runs.claim import MOST_ATTEMPTS, Claim, Kind
from lab.runs.claiming import lease_seconds
from lab.runs.hand_back import put_back
from lab.runs.record import Failure, RunRecord, record_build_failure, record_run
from lab.targets.usable import leave_unusable

# A lease that was not renewed for this many periods of our own clock is over, whatever the database's clock says:
# that clock may have been set back.
_SEEN_PERIODS = 1.5
# The newest of the lost claims are kept.
KEPT = 1000
_seen: dict[tuple[str, str], float] = {}


@dataclass(frozen=True, slots=True)
class Returned:
    """Work taken back from a process that is gone; given_up tells that it is not retried."""

    kind: Kind
    id: int
    claimed_by: str
    given_up: bool


def return_dead_claims(alive: Callable[[str], bool] = is_alive) -> list[Returned]:
    """Put work back whose lease ran out or whose process `alive` denies; returns what was taken back.

    Work that was tried MOST_ATTEMPTS times fails instead, with blame on the lab. Blocks of a group whose target may
    not boot any more go back to the group.
    """
    returned = []
    for kind, row, over in _held():
        if not over and alive(row.claimed_by):
            continue
        claim = Claim(kind, row.pk, row.token)
        given_up = row.attempt >= MOST_ATTEMPTS
        if _give_up(claim, row.attempt) if given_up else put_back(claim, lost=True):
            returned.append(Returned(kind, row.pk, row.claimed_by, given_up))
            _note(returned[-1])
    leave_unusable()
    return returned


def _note(lost: Returned) -> None:
    """Store which host lost the work: the figures count by host."""
    host = lost.claimed_by.rsplit(":", 2)[0]
    row = LostClaim.objects.create(kind=lost.kind, work=lost.id, host=host, worker=lost.claimed_by)
    LostClaim.objects.filter(pk__lte=row.pk - KEPT).delete()


def _held() -> list[tuple[Kind, Any, bool]]:
    """Everything that is claimed, and whether its lease is over."""
    # Read every few seconds for a whole fleet, so without the output of its boots.
    shown = ("token", "claimed_by", "attempt", "lease_until")
    over = ~Q(lease_until__gt=after(0.0))
    builds = Build.objects.filter(state=BuildState.BUILDING).only(*shown).annotate(over=over)
    runs = Run.objects.filter(state=RunState.RUNNING).only(*shown).annotate(over=over)
    held: list[tuple[Kind, Any]] = [("build", build) for build in builds]
    held += [("run", run) for run in runs]
    unrenewed = _unrenewed([row for _, row in held])
    return [(kind, row, row.over or row.token in unrenewed) for kind, row in held]


def _unrenewed(rows: list[Build | Run]) -> set[str]:
    """The tokens of claims whose lease has been the same for too long since this process first saw it."""
    leases = {(row.token, str(row.lease_until)) for row in rows}
    now = monotonic()
    for gone in _seen.keys() - leases:
        del _seen[gone]
    for lease in leases:
        _seen.setdefault(lease, now)
    return {token for token, lease in leases if now - _seen[token, lease] > _SEEN_PERIODS * lease_seconds()}


def _give_up(claim: Claim, attempts: int) -> bool:
    problem = f"its worker died {attempts} times during this work; see the worker's own log"
    if claim.kind == "build":
        return record_build_failure(claim, Failure("lab", problem))
    return record_run(claim, RunRecord(outcome=Outcome.LOST, blame="lab", problem=problem))
