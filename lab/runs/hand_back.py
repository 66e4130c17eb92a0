# SPDX-License-Identifier: GPL-2.0-or-later
"""Give work back to its queue, for the process that holds it or for one that is gone."""

from typing import Any

from django.db import transaction
from django.db.models import F

from lab.models import Build, Run
from lab.models.states import BuildState, RunState, move
from lab.runs.blocks import leave_block
from lab.runs.claim import UNCLAIMED, Claim
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
    """Say where a run may boot that was just queued again: anywhere, or, in a group, where its block is."""
    found = Run.objects.select_related("experiment")
    run = found.only("purpose", "block", "target", "experiment__group").get(pk=run_id)
    if not run.experiment.group:
        Run.objects.filter(pk=run_id).update(target=None)
    elif lost and run.target_id is not None:
        leave_block(run, run.target_id)


def hand_back_unbooted(claim: Claim, problem: str) -> bool:
    """Queue a run again whose target could boot nothing, and count that against the target; False if it was not held any more.

    It is not an attempt of the run's: after three in a row the target is in quarantine, and the run waits or goes elsewhere.
    """
    with transaction.atomic():
        target_id = Run.objects.values_list("target", flat=True).get(pk=claim.id)
        handed_back = put_back(claim, lost=True, attempt=F("attempt") - 1)
        if handed_back and target_id is not None:
            note_fault(target_id, problem)
    return handed_back
