# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures of the lab's last hour for monitoring, in few queries."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from statistics import median

from django.db.models import Count, Max
from django.db.models.functions import Coalesce
from django.utils import timezone

from lab.models import Build, Delivery, Experiment, HealthCheck, LateAnswer, Run
from lab.models.states import BuildState, DeliveryState, ExperimentState

HOUR = timedelta(hours=1)
# A boot or build that takes longer counts in the last bucket alone.
BOUNDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)
# The calibration is compared with the median of so many before it.
BEFORE = 20


@dataclass
class DurationHistogram:
    """Seconds that were taken: how many up to each bound of BOUNDS (and beyond), how many in all, and their sum."""

    buckets: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    sum_s: float = 0.0

    def add(self, seconds: float) -> None:
        """Count one."""
        place = next((number for number, bound in enumerate(BOUNDS) if seconds <= bound), len(BOUNDS))
        self.buckets[place] += 1
        self.sum_s += seconds


@dataclass(frozen=True, slots=True)
class LastHour:
    """Work that ended in the last hour.

    builds: by queue, state and blame; runs: by target, outcome and blame; retries: attempts beyond the first, by kind.
    build_s: by queue; steps_s: by step and target, "run" is the whole from claim to record.
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
    # A boot that was queued again has no place any more: where it was lost, or asked for.
    place = Coalesce("target__name", "lost_on__name", "experiment__target__name")
    for name, outcome, blame, attempt, began, ended, steps in booted.annotate(place=place).values_list(
        "place", "outcome", "blame", "attempt", "started_at", "finished_at", "steps"
    ):
        runs[name, outcome, blame] += 1
        retries["run"] += max(0, attempt - 1)
        if began and ended:
            steps_s["run", name].add(max(0.0, (ended - began).total_seconds()))
        for step, seconds in _told(steps):
            steps_s[step, name].add(seconds)
    return LastHour(builds, runs, retries, build_s, steps_s)


def _told(steps: object) -> Iterable[tuple[str, float]]:
    return steps.items() if isinstance(steps, dict) else ()


def experiments_by_state() -> dict[str, int]:
    """Return how many experiments there are in each state."""
    rows = Experiment.objects.order_by().values_list("state").annotate(number=Count("pk"))
    return dict.fromkeys(ExperimentState.values, 0) | dict(rows)


def deliveries_waiting() -> int:
    """Return how many events wait to be told."""
    return Delivery.objects.filter(state=DeliveryState.WAITING).count()


def late_answers_ever() -> int:
    """Return how many answers were ever refused: their rows are removed some day, their numbers are not given again."""
    return LateAnswer.objects.aggregate(last=Max("pk"))["last"] or 0


def drifts() -> dict[str, float]:
    """Return each target's last calibration over the median of those before it, minus 1; without those that have none."""
    values: dict[str, list[float]] = defaultdict(list)
    recent = HealthCheck.objects.filter(
        ok=True, value__isnull=False, at__gte=timezone.now() - timedelta(days=30)
    )
    for name, value in recent.order_by("target", "-at", "-pk").values_list("target__name", "value"):
        if value is not None and len(values[name]) <= BEFORE:
            values[name].append(value)
    return {
        name: last / median(before) - 1
        for name, (last, *before) in values.items()
        if before and median(before)
    }
