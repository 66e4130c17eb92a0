# SPDX-License-Identifier: GPL-2.0-or-later
"""The front page: what runs, new regressions, unhealthy targets, news, in a fixed number of queries."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from lab.comparisons.regressions import RegressionFilter, regression_rows
from lab.experiments.counts import ExperimentCounts, count_experiments
from lab.experiments.progress import ExperimentProgress
from lab.models import Alert, Experiment
from lab.models.states import ExperimentState
from lab.runs.stalls import current_progress_of
from lab.targets.health_overview import TargetHealth, target_healths

# Of each, at most; the rest is a click away.
RUNNING, REGRESSIONS, ALERTS, NEWEST = 5, 6, 5, 8
CountedExperiment = tuple[Experiment, ExperimentCounts]


@dataclass(frozen=True, slots=True)
class FrontPage:
    """Everything at a glance. running: those being worked on first; waiting: how many open ones are not shown.

    regressions: the newest open ones, as `regression_rows` returns them. more_regressions: whether more are open. targets: all of them; one that is ill has complaints.
    """

    running: tuple[ExperimentProgress, ...]
    waiting: int
    regressions: tuple[Any, ...]
    more_regressions: bool
    targets: tuple[TargetHealth, ...]
    alerts: tuple[Alert, ...]
    newest: tuple[CountedExperiment, ...]


def front_page() -> FrontPage:
    """Look around."""
    running, waiting = _running()
    regressions = tuple(regression_rows(RegressionFilter())[: REGRESSIONS + 1])
    return FrontPage(
        running=running,
        waiting=waiting,
        regressions=regressions[:REGRESSIONS],
        more_regressions=len(regressions) > REGRESSIONS,
        targets=target_healths(),
        alerts=_alerts(),
        newest=_newest(),
    )


def _running() -> tuple[tuple[ExperimentProgress, ...], int]:
    """Return running experiments and those that have waited longest; and the number of other open ones."""
    rows = Experiment.objects.filter(state__in=(ExperimentState.RUNNING, ExperimentState.QUEUED)).defer(
        "spec"
    )
    # "running" comes after "queued".
    shown = list(rows.select_related("target").order_by("-state", "pk")[:RUNNING])
    found = current_progress_of(shown)
    waiting = rows.count() - len(shown) if len(shown) == RUNNING else 0
    return tuple(found[row.pk] for row in shown), waiting


def _alerts() -> tuple[Alert, ...]:
    rows = Alert.objects.filter(seen_at=None).select_related("standing").defer("standing__spec")
    return tuple(rows.order_by("-pk")[:ALERTS])


def _newest() -> tuple[CountedExperiment, ...]:
    rows = Experiment.objects.select_related("tree", "submitter").defer("spec")
    return with_counts(rows.order_by("-pk")[:NEWEST])


def with_counts(found: Iterable[Experiment]) -> tuple[CountedExperiment, ...]:
    """Return experiments in their order, each with its counts."""
    rows = list(found)
    counted = count_experiments([row.pk for row in rows])
    return tuple((row, counted[row.pk]) for row in rows)
