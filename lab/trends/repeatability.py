# SPDX-License-Identifier: GPL-2.0-or-later
"""The repeatability of alerts: the share of those that a later experiment of the same revision confirms.

An alert is repeated by each later experiment that measures its revision in the same trend. It is confirmed when the median
of all boots of these experiments lies beyond the middle between the levels before and after the step.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from lab.models import Alert, BasePoint, Revision

# Points before the step that say what its lower level was.
BEFORE = 5


@dataclass(frozen=True, slots=True)
class Repeat:
    """An alert that was measured again, by which experiments, and whether they confirm it."""

    alert: int
    experiments: tuple[int, ...]
    confirmed: bool


@dataclass(frozen=True, slots=True)
class Repeatability:
    """Counts over all alerts. share: of the repeated ones, None while none was repeated."""

    alerts: int
    repeated: int
    confirmed: int

    @property
    def share(self) -> float | None:
        """Return the share of repeated alerts that were confirmed."""
        return self.confirmed / self.repeated if self.repeated else None


def is_confirmed(before: float, ratio: float, boots: Sequence[float]) -> bool:
    """Return whether boots lie nearer to the level after a step than to the one before it.

    ratio: after / before. Nearness is that of ratios where all numbers are positive.
    """
    again = median(boots)
    if before > 0 and ratio > 0 and again > 0:
        step = math.log(ratio)
        return math.log(again / before) * math.copysign(1.0, step) > abs(step) / 2
    after = before * ratio
    return abs(again - after) < abs(again - before)


def repeatability() -> Repeatability:
    """Count the alerts, those that were measured again, and those that this confirmed."""
    found = repeats()
    return Repeatability(Alert.objects.count(), len(found), sum(one.confirmed for one in found))


def repeats() -> tuple[Repeat, ...]:
    """Return the alerts that were measured again, the newest first, in three queries."""
    alerts = list(Alert.objects.exclude(experiment=None).order_by("-pk"))
    points: dict[str, list[BasePoint]] = defaultdict(list)
    rows = BasePoint.objects.filter(trend__in={alert.trend for alert in alerts})
    for row in rows.select_related("case__experiment").defer("case__experiment__spec"):
        points[row.trend].append(row)
    commits = {row.commit for of in points.values() for row in of}
    places = dict(Revision.objects.filter(commit__in=commits).values_list("commit", "position"))
    found = (_repeat(alert, points[alert.trend], places) for alert in alerts)
    return tuple(one for one in found if one is not None)


def _repeat(alert: Alert, points: Sequence[BasePoint], places: dict[str, int]) -> Repeat | None:
    first = alert.experiment_id or 0
    again = [row for row in points if row.commit == alert.commit and row.case.experiment_id > first]
    at = places.get(alert.commit)
    earlier = [row for row in points if at is not None and places.get(row.commit, at) < at]
    earlier.sort(key=lambda row: places[row.commit])
    if not again or not earlier:
        return None
    before = median(value for row in earlier[-BEFORE:] for value in row.boots)
    boots = [value for row in again for value in row.boots]
    experiments = tuple(sorted({row.case.experiment_id for row in again}))
    return Repeat(alert.pk, experiments, is_confirmed(before, alert.ratio, boots))
