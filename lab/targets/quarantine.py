# SPDX-License-Identifier: GPL-2.0-or-later
"""Quarantine targets that fail repeatedly by the lab's own fault, until an operator releases them.

Begin and end of a quarantine are reported: to hooks by events written in the same transaction, to operators by lab/targets/operator_mails.py.
"""

from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from lab.errors import UnknownRow
from lab.hooks.events import tell_quarantine
from lab.models import Quarantine, Target, User
from lab.models.storable import storable_text
from lab.people.permissions import check_may
from lab.targets.usable import leave_unusable

# This many of the lab's faults, one after the other without a good boot in between.
FAULTS_IN_A_ROW = 3


def note_fault(target_id: int, problem: str) -> bool:
    """Count a fault of the lab on a target; True if it is the one that puts it into quarantine.

    Call it in the transaction that records the fault. Boots that wait for the target in a group go elsewhere.
    """
    rows = Target.objects.filter(pk=target_id)
    rows.update(faults=F("faults") + 1)
    last = storable_text(" ".join(problem.split()), 500)
    reason = f"{FAULTS_IN_A_ROW} faults of the lab in a row, the last: {last}"
    return _begin(rows.filter(faults__gte=FAULTS_IN_A_ROW), reason)


def note_success(target_id: int) -> None:
    """Forget the faults of a target that worked; a quarantine stays."""
    Target.objects.filter(pk=target_id, faults__gt=0, quarantined_at=None).update(faults=0)


def release_target(*, target_id: int, by: User | None) -> Target:
    """Let a target boot again; by: None at this machine's own terminal. Raises NotAllowed, UnknownRow."""
    check_may(by, "operate", "release targets")
    rows = Target.objects.filter(pk=target_id)
    # The operator says that the fault is gone: a health check will show.
    over = {"quarantined_at": None, "quarantine_reason": "", "faults": 0, "check_asked_at": timezone.now()}
    with transaction.atomic():
        held = rows.filter(quarantined_at__isnull=False).first()
        if held is not None and rows.filter(quarantined_at__isnull=False).update(**over):
            _end(held, by)
        elif not rows.update(**over):
            raise UnknownRow(f"there is no target {target_id}")
        return rows.get()


def _begin(rows: QuerySet[Target], reason: str) -> bool:
    """Put the one target of `rows` into quarantine; False if there is none, or it is in one already."""
    now = timezone.now()
    with transaction.atomic():
        if not rows.filter(quarantined_at=None).update(quarantined_at=now, quarantine_reason=reason):
            return False
        leave_unusable()
        # Older code, which did not know these rows, released it without writing here.
        Quarantine.objects.filter(target__in=rows, ended_at=None).update(ended_at=now, ended_told_at=now)
        tell_quarantine(Quarantine.objects.create(target=rows.get(), reason=reason, began_at=now))
    return True


def _end(held: Target, by: User | None) -> None:
    """Note the end of a quarantine; held: the target as it was before."""
    now = timezone.now()
    row = Quarantine.objects.select_related("target").filter(target=held, ended_at=None).first()
    if row is None:
        # It began before these rows existed: its beginning is not reported any more.
        row = Quarantine(target=held, reason=held.quarantine_reason, began_told_at=now)
        row.began_at = held.quarantined_at or now
    row.ended_at, row.ended_by = now, by
    row.save()
    tell_quarantine(row)
