# SPDX-License-Identifier: GPL-2.0-or-later
"""Targets that keep failing for the lab's own reasons boot nothing until an operator has looked at them."""

from __future__ import annotations

from django.db.models import F
from django.utils import timezone

from lab.access import may
from lab.errors import NotAllowed, UnknownRow
from lab.models import Target, User
from lab.queue.blocks import leave_unusable
from lab.storable import storable_text

# So many of the lab's faults, one after the other without a boot that went as it should.
FAULTS_IN_A_ROW = 3


def note_fault(target_id: int, problem: str) -> bool:
    """Count a fault of the lab on a target; True if it is the one that puts it into quarantine.

    Call it in the transaction that records the fault. What waits for the target in a group goes elsewhere.
    """
    rows = Target.objects.filter(pk=target_id)
    rows.update(faults=F("faults") + 1)
    last = storable_text(" ".join(problem.split()), 500)
    moved = rows.filter(faults__gte=FAULTS_IN_A_ROW, quarantined_at=None).update(
        quarantined_at=timezone.now(),
        quarantine_reason=f"{FAULTS_IN_A_ROW} faults of the lab in a row, the last: {last}",
    )
    if moved:
        leave_unusable()
    return moved == 1


def note_success(target_id: int) -> None:
    """Forget the faults of a target that did what it was asked; a quarantine stays."""
    Target.objects.filter(pk=target_id, faults__gt=0, quarantined_at=None).update(faults=0)


def quarantine_target(target_id: int, reason: str) -> bool:
    """Put a target into quarantine at once, as a failed health check does; False if it is there already."""
    rows = Target.objects.filter(pk=target_id, quarantined_at=None)
    moved = rows.update(quarantined_at=timezone.now(), quarantine_reason=" ".join(reason.split())[:1000])
    if moved:
        leave_unusable()
    return moved == 1


def release_target(*, target_id: int, by: User | None) -> Target:
    """Let a target boot again; by: None at this machine's own terminal, or where a health check went well.

    Raises NotAllowed, UnknownRow.
    """
    if by is not None and not may(by, "operate"):
        raise NotAllowed(f"{by.username} is a {by.role}: operators release targets")
    rows = Target.objects.filter(pk=target_id)
    # Whatever it was is over, they say: a health check tells.
    ended = {"quarantined_at": None, "quarantine_reason": "", "faults": 0, "check_asked_at": timezone.now()}
    if not rows.update(**ended):
        raise UnknownRow(f"there is no target {target_id}")
    return rows.get()
