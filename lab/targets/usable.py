# SPDX-License-Identifier: GPL-2.0-or-later
"""Targets that may boot now, and the reasons why those of an experiment may not."""

from django.db.models import Q, QuerySet

from lab.models import Experiment, Run, Target
from lab.models.states import RunState

USABLE = Q(enabled=True, quarantined_at=None)


def usable_targets() -> QuerySet[Target]:
    """Targets that may boot: enabled, and not in quarantine."""
    return Target.objects.filter(USABLE)


def why_unusable(experiment_id: int) -> str:
    """Return why an experiment cannot boot anywhere now; "" if it can."""
    experiment = Experiment.objects.only("group", "target").get(pk=experiment_id)
    group = experiment.group
    asked = Target.objects.filter(group=group) if group else Target.objects.filter(pk=experiment.target_id)
    if asked.filter(USABLE).exists():
        return ""
    return (
        "; ".join(_unusable(target) for target in asked.order_by("name")) or f'group "{group}" has no target'
    )


def _unusable(target: Target) -> str:
    if target.quarantined_at is None:
        return f'target "{target.name}" is not enabled'
    return (
        f'target "{target.name}" is in quarantine: {target.quarantine_reason}; '
        f"`labctl target release {target.name}` ends it"
    )


def leave_unusable() -> int:
    """Give the blocks of targets that may not boot back to their groups; returns how many boots that were."""
    unusable = Target.objects.exclude(USABLE)
    return Run.objects.filter(state=RunState.QUEUED, target__in=unusable).update(target=None)
