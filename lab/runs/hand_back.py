# SPDX-License-Identifier: GPL-2.0-or-later
"""Give work back to its queue, for the process that holds it, for one that is gone, or at an operator's word."""

import logging
from typing import Any

from django.db import transaction
from django.db.models import F

from lab.errors import Outdated, UnknownRow
from lab.models import Build, Run, User
from lab.models.states import BuildState, RunState, move
from lab.people.permissions import check_may
from lab.runs.blocks import leave_block
from lab.runs.claim import UNCLAIMED, Claim, Kind
from lab.targets.quarantine import note_fault


def release(claim: Claim) -> bool:
    """Give unfinished work back to the queue, as at Ctrl-C; False if it was not held any more.

    It does not count as an attempt: nothing is wrong with the work. A block of a group stays where it is.
    """
    return put_back(claim, attempt=F("attempt") - 1)


def put_back(claim: Claim, *, lost: bool = False, **fields: Any) -> bool:
    """Queue claimed work again, with `fields` written beside; False if it was not held any more.

    lost: by the lab's fault, so that another target of the group goes first.
    """
    fields |= UNCLAIMED
    if claim.kind == "build":
        return move(Build, claim.id, BuildState.BUILDING, BuildState.QUEUED, held=claim.token, **fields)
    with transaction.atomic():
        moved = move(Run, claim.id, RunState.RUNNING, RunState.QUEUED, held=claim.token, **fields)
        if moved:
            leave_place(claim.id, lost=lost)
    return moved


def leave_place(run_id: int, *, lost: bool) -> None:
    """Set where a run that was just requeued may boot: anywhere, or, in a group, where its block is."""
    rows = Run.objects.select_related("experiment")
    run = rows.only("purpose", "block", "target", "experiment__group").get(pk=run_id)
    if not run.experiment.group:
        Run.objects.filter(pk=run_id).update(target=None)
    elif lost and run.target_id is not None:
        leave_block(run, run.target_id)


def hand_back_unbooted(claim: Claim, problem: str) -> bool:
    """Queue a run again whose target could boot nothing, and count that against the target; False if it was not held any more.

    It is no attempt of the run: after three such faults in a row the target is in quarantine, and the run waits or goes elsewhere.
    """
    with transaction.atomic():
        target_id = Run.objects.values_list("target", flat=True).get(pk=claim.id)
        handed_back = put_back(claim, lost=True, attempt=F("attempt") - 1)
        if handed_back and target_id is not None:
            note_fault(target_id, problem)
    return handed_back


log = logging.getLogger(__name__)


def take_back(*, by: User | None, kind: Kind, work: int, lease: str = "") -> str:
    """Queue claimed work again; returns who held it. by: None at this machine's own terminal.

    lease: the claim that the operator saw, as `lease_name` returns it, "" for any claim.
    Raises NotAllowed, UnknownRow, Outdated where that claim is over.
    """
    check_may(by, "operate", "take claims back")
    model: type[Build] | type[Run] = Build if kind == "build" else Run
    row = model.objects.filter(pk=work).first()
    if row is None:
        raise UnknownRow(f"there is no {kind} {work}")
    held = row.state in (BuildState.BUILDING, RunState.RUNNING)
    if (
        not held
        or (lease and lease != lease_name(row.token))
        or not put_back(Claim(kind, work, row.token), lost=True)
    ):
        raise Outdated(f"{kind} {work} has changed since this page was loaded: it is now {row.state}")
    log.warning(
        "%s %s was taken back from %s by %s",
        kind,
        work,
        row.claimed_by,
        by.username if by else "the terminal",
    )
    return row.claimed_by


def lease_name(token: str) -> str:
    """Return a claim's name on pages: enough to distinguish it from a later claim, too little to write with."""
    return token[:8]
