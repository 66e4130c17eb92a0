# SPDX-License-Identifier: GPL-2.0-or-later
"""Read standing experiments and their alerts for pages."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.core.paginator import Page
from django.db.models import Count, OuterRef, Q, Subquery
from django.utils import timezone

from lab.models import Alert, Experiment, Revision, Standing
from lab.models.bounded import leaf
from lab.standing.changes import find_standing
from lab.standing.new_revisions import boots_of_a_day
from lab.standing.quiet_hours import is_quiet, quiet_until

PAGE_SIZE = 50
MOST_RECENT = 20


@dataclass(frozen=True, slots=True)
class StandingLine:
    """One standing experiment. quiet: "" or until when; subject: of its last commit; next_look: None while it is disabled; latest: its newest experiment."""

    row: Standing
    quiet: str
    next_look: datetime | None
    subject: str
    latest: Experiment | None
    unseen: int


@dataclass(frozen=True, slots=True)
class StandingPage:
    """One standing experiment with its alerts and experiments. spent: boots of the tree's budget that are used; budget: None without a limit."""

    line: StandingLine
    cases: str
    spent: int
    budget: int | None
    experiments: tuple[Experiment, ...]
    alerts: tuple[Alert, ...]


def standing_lines() -> tuple[StandingLine, ...]:
    """Return all standing experiments by name."""
    unseen = Count("alerts", filter=Q(alerts__seen_at=None))
    rows = list(Standing.objects.select_related("owner", "tree").annotate(unseen=unseen))
    latest = Experiment.objects.filter(standing=OuterRef("pk")).order_by("-pk").values("pk")[:1]
    keys = Standing.objects.annotate(latest=Subquery(latest)).values("latest")
    newest = {
        experiment.standing_id: experiment
        for experiment in Experiment.objects.filter(pk__in=keys).defer("spec")
    }
    return tuple(_line(row, newest.get(row.pk), row.unseen) for row in rows)


def standing_page(name: str) -> StandingPage:
    """Return one standing experiment. Raises UnknownRow."""
    row = find_standing(name)
    experiments = tuple(row.experiments.order_by("-pk")[:MOST_RECENT])
    alerts = tuple(row.alerts.select_related("seen_by")[:MOST_RECENT])
    unseen = row.alerts.filter(seen_at=None).count()
    cases = [f"{case['workload']} ({case.get('preset', 'small')})" for case in row.spec.get("cases", [])]
    return StandingPage(
        line=_line(row, experiments[0] if experiments else None, unseen),
        cases=", ".join(cases),
        spent=boots_of_a_day(row.tree, timezone.now()),
        budget=row.tree.boots_a_day,
        experiments=experiments,
        alerts=alerts,
    )


def alert_page(number: int, *, unseen: bool = False) -> Page[Any]:
    """Return one page of all alerts, the newest first; a number beyond the last gives the last page."""
    rows = Alert.objects.select_related("standing", "seen_by", "experiment").order_by("-pk")
    return leaf(rows.filter(seen_at=None) if unseen else rows, PAGE_SIZE, number)


def unseen_alerts() -> int:
    """Return how many alerts nobody has marked as seen."""
    return Alert.objects.filter(seen_at=None).count()


def _line(row: Standing, latest: Experiment | None, unseen: int) -> StandingLine:
    now = timezone.now()
    looked = row.polled_at + timedelta(seconds=row.poll_every_s) if row.polled_at and not row.due else now
    known = (
        Revision.objects.filter(tree=row.tree_id, commit=row.last_commit).first() if row.last_commit else None
    )
    return StandingLine(
        row=row,
        quiet=quiet_until(row) if is_quiet(row, now) else "",
        next_look=max(looked, now) if row.enabled else None,
        subject=known.subject if known else "",
        latest=latest,
        unseen=unseen,
    )
