# SPDX-License-Identifier: GPL-2.0-or-later
"""Assign blocks of a group's experiment to targets: each block boots whole on the target that claimed its first boot.

Differences between two targets of a group cancel out where a block is compared within itself, so a block must not be
split. If its target cannot go on, its open boots go elsewhere and its measured boots are repeated there: the earlier
ones are kept, do not count, and say so.
"""

from django.db.models import F, QuerySet

from lab.leases.prepared import after
from lab.models import Run, Target
from lab.models.states import Purpose, RunState
from lab.runs.rounds import take_elsewhere


def block_of(run: Run) -> QuerySet[Run]:
    """The runs of a run's block, itself among them."""
    return Run.objects.filter(experiment=run.experiment_id, purpose=run.purpose, block=run.block)


def take_block(run: Run, target: Target) -> bool:
    """Reserve the open boots of a run's block for a target; False if another was faster. Call it in the claim's transaction.

    Measured boots that the block had elsewhere are repeated here, also those that still run there.
    """
    free = block_of(run).filter(state=RunState.QUEUED, target=None)
    # In one order, so that two targets that want the same block wait for each other and never deadlock.
    rows = list(free.order_by("pk").select_for_update().values_list("pk", flat=True))
    if run.pk not in rows:
        return False
    Run.objects.filter(pk__in=rows).update(target=target)
    elsewhere = block_of(run).exclude(target=target)
    elsewhere.filter(state=RunState.RUNNING).update(lost_on=F("target"), lost_at=after(0.0))
    for earlier in elsewhere.filter(purpose=Purpose.MEASURED, state=RunState.DONE, invalid=[]):
        take_elsewhere(earlier, target)
    return True


def leave_block(run: Run, target_id: int) -> None:
    """Give the open boots of a block back to the group, since its target lost one of them."""
    held = block_of(run).filter(state=RunState.QUEUED, target=target_id)
    held.update(target=None, lost_on=target_id, lost_at=after(0.0))


def follow_block(run_id: int) -> bool:
    """Repeat a boot that ended on a target which its block has left; False if the block stayed."""
    run = Run.objects.get(pk=run_id)
    if run.target_id is None or run.lost_on_id != run.target_id:
        return False
    there = block_of(run).exclude(target=run.target_id).filter(target__isnull=False)
    now_on = there.filter(state__in=(RunState.QUEUED, RunState.RUNNING)).first() or there.last()
    take_elsewhere(run, now_on.target if now_on else None)
    return True
