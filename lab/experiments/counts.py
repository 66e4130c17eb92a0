# SPDX-License-Identifier: GPL-2.0-or-later
"""Count the boots, variants and verdicts of many experiments at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from django.db.models import Count

from lab.models import Comparison, Run, Variant
from lab.models.states import Role, RunState, VariantState

OVER = (RunState.DONE, RunState.FAILED, RunState.CANCELLED)


@dataclass(slots=True)
class ExperimentCounts:
    """Of one experiment. verdicts: of primary metrics of candidates; unjudged: candidates without any."""

    boots_over: int = 0
    boots_total: int = 0
    variants: int = 0
    pruned: int = 0
    unjudged: int = 0
    verdicts: dict[str, int] = field(default_factory=dict)


def count_experiments(experiment_ids: Sequence[int]) -> dict[int, ExperimentCounts]:
    """Count for each of these experiments, in four questions."""
    found = {experiment_id: ExperimentCounts() for experiment_id in experiment_ids}
    runs = Run.objects.filter(experiment__in=found).order_by()
    for experiment, state, count in runs.values_list("experiment_id", "state").annotate(Count("pk")):
        found[experiment].boots_total += count
        found[experiment].boots_over += count if state in OVER else 0
    variants = Variant.objects.filter(experiment__in=found).order_by()
    for experiment, state, role, count in variants.values_list("experiment_id", "state", "role").annotate(
        Count("pk")
    ):
        pruned = state == VariantState.PRUNED
        found[experiment].pruned += count if pruned else 0
        found[experiment].variants += 0 if pruned else count
        found[experiment].unjudged += count if role == Role.CANDIDATE and not pruned else 0
    judged = Comparison.objects.filter(
        experiment__in=found, primary=True, variant__role=Role.CANDIDATE
    ).order_by()
    counted = judged.values_list("experiment_id", "verdict").annotate(Count("pk"))
    for experiment, verdict, count in counted.order_by("experiment_id", "verdict"):
        found[experiment].verdicts[verdict] = count
    for experiment, count in judged.values_list("experiment_id").annotate(Count("variant", distinct=True)):
        found[experiment].unjudged -= count
    return found
