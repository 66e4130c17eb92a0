# SPDX-License-Identifier: GPL-2.0-or-later
"""The repeatability of alerts: the share of those that a later experiment of the same revision confirms.

An alert is repeated by each later experiment that measures its revision in the same trend. It is confirmed when the median
of all boots of these experiments lies beyond the middle between the levels before and after the step.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from django.db.models import Exists, OuterRef, QuerySet

from lab.models import Alert, BasePoint, Revision
from lab.models.bounded import bounded_count

# The number of newest alerts that are counted; older ones do not show the lab as it is now.
COUNTED = 200
# The level before a step is the median of this many points before it.
BEFORE = 5


@dataclass(frozen=True, slots=True)
class Repeat:
    """An alert whose revision was measured again: the experiments, and whether they confirm it."""

    alert: int
    experiments: tuple[int, ...]
    confirmed: bool


@dataclass(frozen=True, slots=True)
class Repeatability:
    """Counts over the newest alerts. share: of the repeated ones, None while none was repeated."""

    alerts: int
    repeated: int
    confirmed: int

    @property
    def share(self) -> float | None:
        """Return the share of repeated alerts that were confirmed."""
        return self.confirmed / self.repeated if self.repeated else None


def is_confirmed(before: float, ratio: float, boots: Sequence[float]) -> bool:
    """Return whether boots lie nearer to the level after a step than to the one before it.

    ratio: after / before. Where all numbers are positive, distances are those of logarithms.
    """
    again = median(boots)
    if before > 0 and ratio > 0 and again > 0:
        step = math.log(ratio)
        return math.log(again / before) * math.copysign(1.0, step) > abs(step) / 2
    after = before * ratio
    return abs(again - after) < abs(again - before)


def repeatability() -> Repeatability:
    """Count the newest alerts, those that were measured again, and those that were confirmed."""
    repeated = repeats()
    alerts = min(COUNTED, bounded_count(Alert.objects.all(), COUNTED))
    return Repeatability(alerts, len(repeated), sum(repeat.confirmed for repeat in repeated))


def repeats() -> tuple[Repeat, ...]:
    """Return which of the newest alerts were measured again, the newest first, in four queries."""
    alerts = list(Alert.objects.order_by("-pk")[:COUNTED])
    since = alerts[-1].pk if alerts else 0
    own = Alert.objects.filter(pk__gte=since, trend=OuterRef("trend"), commit=OuterRef("commit"))
    again = _points(BasePoint.objects.filter(Exists(own)))
    measured = [alert for alert in alerts if _later(alert, again[alert.trend])]
    levels = _points(BasePoint.objects.filter(trend__in={alert.trend for alert in measured}))
    commits = {row.commit for of in levels.values() for row in of}
    places = dict(Revision.objects.filter(commit__in=commits).values_list("commit", "position"))
    repeated = (_repeat(alert, levels[alert.trend], places) for alert in measured)
    return tuple(repeat for repeat in repeated if repeat is not None)


def _points(rows: QuerySet[BasePoint]) -> dict[str, list[BasePoint]]:
    points: dict[str, list[BasePoint]] = defaultdict(list)
    for row in rows.select_related("case").only("trend", "commit", "boots", "case__experiment"):
        points[row.trend].append(row)
    return points


def _later(alert: Alert, points: Sequence[BasePoint]) -> list[BasePoint]:
    """Return the points at an alert's revision that later experiments added; none where the alert's own experiment is gone."""
    first = alert.experiment_id
    return [
        row
        for row in points
        if first is not None and row.commit == alert.commit and row.case.experiment_id > first
    ]


def _repeat(alert: Alert, points: Sequence[BasePoint], places: dict[str, int]) -> Repeat | None:
    again = _later(alert, points)
    at = places.get(alert.commit)
    earlier = [row for row in points if at is not None and places.get(row.commit, at) < at]
    earlier.sort(key=lambda row: places[row.commit])
    if not again or not earlier:
        return None
    before = median(value for row in earlier[-BEFORE:] for value in row.boots)
    boots = [value for row in again for value in row.boots]
    experiments = tuple(sorted({row.case.experiment_id for row in again}))
    return Repeat(alert.pk, experiments, is_confirmed(before, alert.ratio, boots))
