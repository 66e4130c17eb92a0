# SPDX-License-Identifier: GPL-2.0-or-later
"""The front page: what runs, new regressions, unhealthy targets, news, in a fixed number of queries."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from lab.comparisons.regressions import RegressionFilter, RegressionLine, regression_lines, regression_rows
from lab.experiments.counts import ExperimentCounts, count_experiments
from lab.experiments.progress import ExperimentProgress
from lab.models import Alert, Experiment
from lab.models.states import ExperimentState
from lab.runs.stalls import current_progress_of
from lab.targets.health_overview import TargetHealth, target_healths

# Of each, at most; the rest is a click away.
RUNNING, REGRESSIONS, ALERTS, NEWEST = 5, 6, 5, 8


@dataclass(frozen=True, slots=True)
class AlertLine:
    """A step that a standing experiment found and nobody has looked at yet."""

    id: int
    standing: str
    trend: str
    metric: str
    ratio: float
    worse: bool
    text: str
    experiment_id: int | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class NewLine:
    """One of the newest experiments; submitter: "" from this machine's own terminal."""

    id: int
    name: str
    state: str
    tree: str
    submitter: str
    tally: ExperimentCounts
    created_at: datetime


@dataclass(frozen=True, slots=True)
class FrontPage:
    """Everything at a glance. running: those being worked on first; waiting: how many open ones are not shown.

    more_regressions: whether there are more open ones than these. targets: all, for who is ill see their complaints.
    """

    running: tuple[ExperimentProgress, ...]
    waiting: int
    regressions: tuple[RegressionLine, ...]
    more_regressions: bool
    targets: tuple[TargetHealth, ...]
    alerts: tuple[AlertLine, ...]
    newest: tuple[NewLine, ...]


def front_page() -> FrontPage:
    """Look around."""
    running, waiting = _running()
    regressions = regression_lines(regression_rows(RegressionFilter())[: REGRESSIONS + 1])
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


def _alerts() -> tuple[AlertLine, ...]:
    rows = Alert.objects.filter(seen_at=None).select_related("standing").defer("standing__spec")
    return tuple(
        AlertLine(
            id=row.pk,
            standing=row.standing.name,
            trend=row.trend,
            metric=row.metric,
            ratio=row.ratio,
            worse=row.worse,
            text=row.text,
            experiment_id=row.experiment_id,
            created_at=row.created_at,
        )
        for row in rows.order_by("-pk")[:ALERTS]
    )


def _newest() -> tuple[NewLine, ...]:
    return new_lines(
        Experiment.objects.select_related("tree", "submitter").defer("spec").order_by("-pk")[:NEWEST]
    )


def new_lines(found: Iterable[Experiment]) -> tuple[NewLine, ...]:
    """Return experiments as lines of a page, in their order."""
    rows = list(found)
    counted = count_experiments([row.pk for row in rows])
    return tuple(
        NewLine(
            id=row.pk,
            name=row.name,
            state=row.state,
            tree=row.tree.name,
            submitter=row.submitter.username if row.submitter else "",
            tally=counted[row.pk],
            created_at=row.created_at,
        )
        for row in rows
    )
