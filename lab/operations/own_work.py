# SPDX-License-Identifier: GPL-2.0-or-later
"""One person's own work: experiments that run or have finished, standing experiments, hooks."""

from datetime import timedelta
from typing import Any

from django.utils import timezone

from lab.hooks.pages import hook_rows
from lab.models import Experiment, User
from lab.models.states import ExperimentState
from lab.operations.front_page import with_verdicts
from lab.runs.stalls import current_progress_of
from lab.standing.pages import standing_lines

# Of each list, at most; the list of experiments has the rest.
SHOWN = 20
# The period shown to somebody who never marked anything as seen.
FIRST_LOOK = timedelta(days=7)
_OPEN = (ExperimentState.RUNNING, ExperimentState.QUEUED)


def own_work(user: User) -> dict[str, Any]:
    """Return somebody's own work. since: finished experiments are those that finished after this moment."""
    since = user.finished_seen_at or timezone.now() - FIRST_LOOK
    own = (
        Experiment.objects.filter(submitter=user).select_related("tree", "target", "submitter").defer("spec")
    )
    shown = list(own.filter(state__in=_OPEN).order_by("-state", "pk")[:SHOWN])
    progress = current_progress_of(shown)
    finished = own.exclude(state__in=_OPEN).filter(finished_at__gt=since).order_by("-finished_at")
    return {
        "running": [progress[row.pk] for row in shown],
        "finished": with_verdicts(finished[:SHOWN]),
        "since": since,
        "standing": [line for line in standing_lines() if line.row.owner_id == user.pk],
        "hooks": hook_rows(user).filter(owner=user),
    }


def mark_seen(user: User) -> None:
    """Take everything of somebody's that is finished by now as seen."""
    User.objects.filter(pk=user.pk).update(finished_seen_at=timezone.now())
