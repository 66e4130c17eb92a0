# SPDX-License-Identifier: GPL-2.0-or-later
"""Work that is given back to its queue: by who holds it, or because who held it is gone."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import F

from lab.models import Build, Run
from lab.queue.blocks import leave_block
from lab.queue.holder import UNCLAIMED, Claim
from lab.states import BuildState, RunState, move


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
