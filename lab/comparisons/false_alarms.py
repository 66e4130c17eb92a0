# SPDX-License-Identifier: GPL-2.0-or-later
"""Count how often the base, compared with itself, got a verdict."""

from django.db.models import Count, Q

from lab.comparisons.shape import AlarmsData
from lab.models import Case, Comparison
from lab.models.states import Role
from lab.statistics.verdict_words import CHANGES


def false_alarms(case: Case) -> dict[str, AlarmsData]:
    """By metric: the A/A record of a case's workload on its target under its clock, to this day; of one machine model only."""
    experiment = case.experiment
    judged = Comparison.objects.filter(
        variant__role=Role.AA,
        case__workload=case.workload,
        experiment__target=experiment.target_id,
        experiment__clock=experiment.clock,
        low__isnull=False,
    )
    if experiment.clock == "contention":
        judged = judged.filter(case__params__machine=case.params.get("machine"))
    counted = judged.values("metric").annotate(
        compared=Count("pk"), called=Count("pk", filter=Q(verdict__in=CHANGES))
    )
    return {row["metric"]: AlarmsData(called=row["called"], compared=row["compared"]) for row in counted}
