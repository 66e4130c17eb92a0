# SPDX-License-Identifier: GPL-2.0-or-later
"""Raise an alert, once, for a step in a trend that a standing experiment feeds.

Trends hold only boots that count: lost, failed and invalid boots make no step. A step that is still pending, as one
outlier at the end may be, waits until it is sure; a step before the standing experiment's first revision raises no alert.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from smtplib import SMTPException

from django.conf import settings
from django.core.mail import send_mail
from django.db import transaction
from django.urls import reverse
from django.utils import timezone

from lab.errors import one_row
from lab.figures import percent
from lab.hooks.events import tell_alert
from lab.models import Alert, Revision, Standing, User
from lab.models.states import ExperimentState
from lab.people.permissions import check_may
from lab.standing.quiet_hours import is_quiet
from lab.trends.page import Point, StepView, TrendPage, fed_by

# A step stays the same one if new revisions move its place by at most this many measured ones.
NEAR = 2


@dataclass(frozen=True, slots=True)
class Telling:
    """Alerts of a standing experiment that were sent now. problem: why no mail was sent; "" if one was, or if there is no address."""

    standing: str
    alerts: tuple[str, ...]
    problem: str = ""

    def __str__(self) -> str:
        return f"standing {self.standing}: {'; '.join(self.alerts)}{f' ({self.problem})' if self.problem else ''}"


def raise_alerts() -> list[Alert]:
    """Look for new steps in the trends of standing experiments with newly ended experiments; returns the new alerts."""
    alerts = []
    for standing in Standing.objects.filter(stale=True).order_by("pk"):
        if Standing.objects.filter(pk=standing.pk, stale=True).update(stale=False) == 1:
            try:
                alerts += _raise(standing)
            except BaseException:
                Standing.objects.filter(pk=standing.pk).update(stale=True)
                raise
    return alerts


def _raise(standing: Standing) -> list[Alert]:
    own = standing.experiments.values_list("base_commit", flat=True)
    placed = Revision.objects.filter(tree=standing.tree_id, commit__in=own).order_by("position").first()
    if placed is None:
        return []
    new = []
    for page in fed_by(standing.pk):
        alerts = list(standing.alerts.filter(trend=page.line.key))
        for step in page.steps:
            if step.pending or step.bad.position < placed.position or _is_told(step, page.points, alerts):
                continue
            alert, is_new = _alert(standing, page, step)
            alerts.append(alert)
            new += [alert] if is_new else []
    return new


def _is_told(step: StepView, points: Sequence[Point], alerts: Sequence[Alert]) -> bool:
    """Return whether one of the alerts is of this step, even if it has moved since."""
    places = {point.revision.commit: index for index, point in enumerate(points)}
    earliest = min(places[step.earliest.commit], step.index - NEAR)
    latest = max(places[step.latest.commit], step.index + NEAR)
    worse = step.verdict == "regression"
    return any(
        alert.worse == worse and earliest <= places.get(alert.commit, -1) <= latest for alert in alerts
    )


def _alert(standing: Standing, page: TrendPage, step: StepView) -> tuple[Alert, bool]:
    over = standing.experiments.filter(state=ExperimentState.DONE).order_by("-finished_at", "-pk")
    worse = step.verdict == "regression"
    size = percent(100 * (step.ratio - 1)).lstrip("+-") if step.ratio is not None else ""
    return Alert.objects.get_or_create(
        standing=standing,
        trend=page.line.key,
        commit=step.bad.commit,
        defaults={
            "experiment": over.first(),
            "metric": page.line.metric,
            "ratio": step.ratio if step.ratio is not None else 1.0,
            "worse": worse,
            "text": f"{page.line.title} got {'worse' if worse else 'better'}{f' by {size} %' if size else ''} at {step.bad.commit[:12]} {step.bad.subject}",
        },
    )


def tell_alerts(*, now: datetime | None = None) -> list[Telling]:
    """Send mails and events of unsent alerts, except those of standing experiments in quiet hours.

    A mail that cannot be sent is retried the next time; the events are sent once.
    """
    moment = now or timezone.now()
    waiting: dict[Standing, list[Alert]] = defaultdict(list)
    for alert in Alert.objects.filter(told_at=None).select_related("standing").order_by("pk"):
        if not is_quiet(alert.standing, moment):
            waiting[alert.standing].append(alert)
    tellings = []
    for standing, alerts in waiting.items():
        ours = [alert for alert in alerts if _claim(alert, moment)]
        if ours:
            tellings.append(Telling(standing.name, tuple(our.text for our in ours), _mail(standing, ours)))
    return tellings


def _claim(alert: Alert, now: datetime) -> bool:
    with transaction.atomic():
        ours = Alert.objects.filter(pk=alert.pk, told_at=None).update(told_at=now) == 1
        if ours:
            tell_alert(alert)
    return ours


def _mail(standing: Standing, alerts: Sequence[Alert]) -> str:
    """Send one mail with all alerts. If it fails, mark them as unsent and return the reason, else ""."""
    if not standing.mail_to:
        return ""
    first, more = alerts[0].text, len(alerts) - 1
    subject = f"[kperflab] {standing.name}: {first}{f' (and {more} more)' if more else ''}"
    try:
        send_mail(" ".join(subject.split())[:200], _text(standing, alerts), None, standing.mail_to)
    except (SMTPException, OSError) as exc:
        Alert.objects.filter(pk__in=[alert.pk for alert in alerts]).update(told_at=None)
        return f"the mail could not be sent and will be retried: {type(exc).__name__}: {exc}"
    return ""


def _text(standing: Standing, alerts: Sequence[Alert]) -> str:
    lines = []
    for alert in alerts:
        lines += [alert.text, f"  {settings.PUBLIC_URL}{reverse('trend', args=[alert.trend])}"]
        if alert.experiment_id:
            lines.append(f"  {settings.PUBLIC_URL}{reverse('experiment', args=[alert.experiment_id])}")
        lines.append("")
    lines += [
        "-- ",
        f"The standing experiment {standing.name} of {settings.PUBLIC_URL} sends its alerts to your address.",
    ]
    return "\n".join(lines)


def see_alert(*, alert_id: int, by: User, scopes: Sequence[str] | None = None) -> Alert:
    """Note that a person has seen an alert; only the first is kept. Raises UnknownRow, NotAllowed."""
    check_may(by, "submit", "mark alerts as seen", scopes=scopes)
    Alert.objects.filter(pk=alert_id, seen_at=None).update(seen_by=by, seen_at=timezone.now())
    return one_row(Alert.objects.filter(pk=alert_id), f"alert {alert_id}")
