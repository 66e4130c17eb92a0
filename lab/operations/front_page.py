# SPDX-License-Identifier: GPL-2.0-or-later
"""The front page and each person's own work: what runs, new regressions, news, in a fixed number of queries."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.utils import timezone

from lab.comparisons.regressions import RegressionFilter, regression_rows
from lab.experiments.counts import count_experiments
from lab.experiments.progress import ExperimentProgress
from lab.hooks.pages import hook_rows
from lab.models import Alert, Experiment, User
from lab.models.states import ExperimentState
from lab.runs.stalls import current_progress_of
from lab.standing.pages import standing_lines
from lab.statistics.verdict_words import VerdictWord, counted_verdicts

# Of each, at most; the rest is a click away.
RUNNING, REGRESSIONS, ALERTS, NEWEST = 5, 6, 5, 8
JudgedExperiment = tuple[Experiment, list[tuple[VerdictWord, str]]]


def front_page() -> dict[str, Any]:
    """Return everything at a glance. running: those being worked on first; waiting: how many open ones are not shown.

    rows: the newest open regressions. more_regressions: whether more are open.
    """
    running, waiting = _running()
    regressions = list(regression_rows(RegressionFilter())[: REGRESSIONS + 1])
    return {
        "running": running,
        "waiting": waiting,
        "rows": regressions[:REGRESSIONS],
        "more_regressions": len(regressions) > REGRESSIONS,
        "alerts": _alerts(),
        "newest": _newest(),
    }


def _running() -> tuple[tuple[ExperimentProgress, ...], int]:
    """Return running experiments and those that have waited longest; and the number of other open ones."""
    rows = Experiment.objects.filter(state__in=(ExperimentState.RUNNING, ExperimentState.QUEUED)).defer(
        "spec"
    )
    # In descending order "running" comes before "queued".
    shown = list(rows.select_related("target").order_by("-state", "pk")[:RUNNING])
    progress = current_progress_of(shown)
    waiting = rows.count() - len(shown) if len(shown) == RUNNING else 0
    return tuple(progress[row.pk] for row in shown), waiting


def _alerts() -> tuple[Alert, ...]:
    rows = Alert.objects.filter(seen_at=None).select_related("standing").defer("standing__spec")
    return tuple(rows.order_by("-pk")[:ALERTS])


def _newest() -> list[JudgedExperiment]:
    rows = Experiment.objects.select_related("tree", "submitter").defer("spec")
    return with_verdicts(rows.order_by("-pk")[:NEWEST])


def with_verdicts(experiments: Iterable[Experiment]) -> list[JudgedExperiment]:
    """Return experiments in their order, each with its verdicts and how many there are of each, in words."""
    rows = list(experiments)
    counted = count_experiments([row.pk for row in rows])
    return [(row, counted_verdicts(counted[row.pk].verdicts)) for row in rows]


# Of each list, at most; the list of experiments has the rest.
SHOWN = 20
# The period shown to somebody who never marked anything as seen.
FIRST_LOOK = timedelta(days=7)
_OPEN = (ExperimentState.RUNNING, ExperimentState.QUEUED)


def own_work(user: User) -> dict[str, Any]:
    """Return somebody's own work. since: finished experiments are those that finished after this moment.

    more_running, more_finished: how many are not shown.
    """
    since = user.finished_seen_at or timezone.now() - FIRST_LOOK
    own = (
        Experiment.objects.filter(submitter=user).select_related("tree", "target", "submitter").defer("spec")
    )
    running = own.filter(state__in=_OPEN)
    shown = list(running.order_by("-state", "pk")[:SHOWN])
    progress = current_progress_of(shown)
    finished = own.exclude(state__in=_OPEN).filter(finished_at__gt=since).order_by("-finished_at")
    return {
        "running": [progress[row.pk] for row in shown],
        "more_running": max(0, running.count() - SHOWN),
        "finished": with_verdicts(finished[:SHOWN]),
        "more_finished": max(0, finished.count() - SHOWN),
        "since": since,
        "standing": [line for line in standing_lines() if line.row.owner_id == user.pk],
        "hooks": hook_rows(user).filter(owner=user),
    }


def mark_seen(user: User) -> None:
    """Mark all of somebody's experiments that are finished by now as seen."""
    User.objects.filter(pk=user.pk).update(finished_seen_at=timezone.now())
