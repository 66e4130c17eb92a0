# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures of the lab's last hour for monitoring, in few queries."""

import json
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from statistics import median

from django.db import connection
from django.db.models import Count, Max
from django.db.models.functions import Coalesce
from django.utils import timezone

from lab.models import Build, Delivery, Experiment, LateAnswer, LostClaim, Run
from lab.models.states import BuildState, DeliveryState, ExperimentState

HOUR = timedelta(hours=1)
# A boot or build that takes longer counts in the last bucket alone.
BOUNDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)
# The calibration is compared with the median of this many before it.
BEFORE = 20
# The newest figures of each target, by its index of checks: a thousand targets have thirty thousand in a month.
_CALIBRATIONS = """
SELECT t.name, (SELECT CAST({list}(c.value) AS text) FROM (
  SELECT h.value FROM lab_healthcheck h WHERE h.target_id = t.id AND h.ok AND h.value IS NOT NULL AND h.at >= %s
  ORDER BY h.at DESC LIMIT %s) c) FROM lab_target t"""
_LIST = {"postgresql": "json_agg", "sqlite": "json_group_array"}


@dataclass
class DurationHistogram:
    """Seconds that were taken: how many up to each bound of BOUNDS (and beyond), how many in all, and their sum."""

    buckets: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    sum_s: float = 0.0

    def add(self, seconds: float) -> None:
        """Count one."""
        self.buckets[bisect_left(BOUNDS, seconds)] += 1
        self.sum_s += seconds


@dataclass(frozen=True, slots=True)
class LastHour:
    """Work that ended in the last hour.

    builds: by queue, state and blame; runs: by target, outcome and blame; retries: attempts beyond the first, by kind.
    build_s: by queue; steps_s: by step and group of equal targets, or the name of a target in no group; the step "run" is the whole
    from claim to record.
    """

    builds: Mapping[tuple[str, str, str], int]
    runs: Mapping[tuple[str, str, str], int]
    retries: Mapping[str, int]
    build_s: Mapping[str, DurationHistogram]
    steps_s: Mapping[tuple[str, str], DurationHistogram]


def last_hour() -> LastHour:
    """Read the builds and boots that ended."""
    since = timezone.now() - HOUR
    builds, retries = Counter[tuple[str, str, str]](), Counter(build=0, run=0)
    build_s: dict[str, DurationHistogram] = defaultdict(DurationHistogram)
    rows = Build.objects.filter(finished_at__gte=since).order_by("pk")
    for queue, state, blame, seconds, cached, attempt in rows.values_list(
        "queue", "state", "blame", "wall_seconds", "cached", "attempt"
    ):
        builds[queue, state, blame] += 1
        retries["build"] += max(0, attempt - 1)
        if state == BuildState.BUILT and seconds is not None and not cached:
            build_s[queue].add(seconds)
    runs = Counter[tuple[str, str, str]]()
    steps_s: dict[tuple[str, str], DurationHistogram] = defaultdict(DurationHistogram)
    booted = Run.objects.filter(finished_at__gte=since).exclude(outcome="").order_by("pk")
    # A requeued boot has no target any more: it counts where it was lost, or for its experiment's target.
    columns = {
        column: Coalesce(f"target__{column}", f"lost_on__{column}", f"experiment__target__{column}")
        for column in ("name", "group")
    }
    for name, group, outcome, blame, attempt, began, ended, steps in booted.values_list(
        *columns.values(), "outcome", "blame", "attempt", "started_at", "finished_at", "steps"
    ):
        place = group or name
        runs[name, outcome, blame] += 1
        retries["run"] += max(0, attempt - 1)
        if began and ended:
            steps_s["run", place].add(max(0.0, (ended - began).total_seconds()))
        for step, seconds in _step_seconds(steps):
            steps_s[step, place].add(seconds)
    return LastHour(builds, runs, retries, build_s, steps_s)


def _step_seconds(steps: object) -> Iterable[tuple[str, float]]:
    return steps.items() if isinstance(steps, dict) else ()


def experiments_by_state() -> dict[str, int]:
    """Return how many experiments there are in each state."""
    rows = Experiment.objects.order_by().values_list("state").annotate(number=Count("pk"))
    return dict.fromkeys(ExperimentState.values, 0) | dict(rows)


def deliveries_waiting() -> int:
    """Return how many events wait for delivery."""
    return Delivery.objects.filter(state=DeliveryState.WAITING).count()


def late_answers_ever() -> int:
    """Return how many answers were ever refused: old rows are removed, but their numbers are never reused."""
    return LateAnswer.objects.aggregate(last=Max("pk"))["last"] or 0


def lost_claims() -> Mapping[str, int]:
    """Return how many claims each host lost in the last hour; hosts that lost none are left out."""
    since = timezone.now() - HOUR
    rows = LostClaim.objects.filter(at__gte=since).order_by().values_list("host")
    return dict(rows.annotate(number=Count("pk")))


def drifts() -> dict[str, float]:
    """Return each target's last calibration over the median of those before it, minus 1; without those that have none."""
    text = _CALIBRATIONS.format(list=_LIST[connection.vendor])
    with connection.cursor() as cursor:
        cursor.execute(text, [timezone.now() - timedelta(days=30), BEFORE + 1])
        rows = cursor.fetchall()
    # The newest first.
    values = {name: json.loads(calibrations or "[]") for name, calibrations in rows}
    return {
        name: of[0] / level - 1 for name, of in values.items() if len(of) > 1 and (level := median(of[1:]))
    }
