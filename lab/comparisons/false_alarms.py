# SPDX-License-Identifier: GPL-2.0-or-later
"""Count how often the base, compared with itself, got a verdict."""

from django.db.models import Count, Q

from lab.comparisons.shape import AlarmsData
from lab.models import Case, Comparison, Experiment, Variant
from lab.models.states import Role
from lab.statistics.verdict_words import CHANGES

# Experiments on a target that the record is of.
NEWEST = 100


def false_alarms(case: Case) -> dict[str, AlarmsData]:
    """By metric: the A/A record of a case's workload on its target under its clock, over the newest experiments there; of one machine model only."""
    experiment = case.experiment
    # The newest of the target say how it is, and reading all would take longer each month.
    newest = Experiment.objects.filter(target=experiment.target_id, clock=experiment.clock).order_by("-pk")
    keys = list(newest.values_list("pk", flat=True)[:NEWEST])
    again = list(Variant.objects.filter(experiment__in=keys, role=Role.AA).values_list("pk", flat=True))
    cases = list(
        Case.objects.filter(experiment__in=keys, workload=case.workload).values_list("pk", flat=True)
    )
    judged = Comparison.objects.filter(variant__in=again, case__in=cases, low__isnull=False)
    if experiment.clock == "contention":
        judged = judged.filter(case__params__machine=case.params.get("machine"))
    counted = judged.values("metric").annotate(
        compared=Count("pk"), called=Count("pk", filter=Q(verdict__in=CHANGES))
    )
    return {row["metric"]: AlarmsData(called=row["called"], compared=row["compared"]) for row in counted}
