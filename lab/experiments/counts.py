# SPDX-License-Identifier: GPL-2.0-or-later
"""Count the variants, boots and verdicts of experiments in a few queries for a whole list, and derive the exit code."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field

from django.db.models import Count

from lab.models import Case, Comparison, Run, Variant
from lab.models.states import Role, RunState, VariantState
from lab.statistics.verdict_words import shown_verdict

OVER = (RunState.DONE, RunState.FAILED, RunState.CANCELLED)


@dataclass(slots=True)
class ExperimentCounts:
    """Of one experiment. verdicts: of primary metrics of candidates; unjudged: cases in which a candidate has none, over all candidates."""

    boots_over: int = 0
    boots_total: int = 0
    variants: int = 0
    pruned: int = 0
    unjudged: int = 0
    verdicts: dict[str, int] = field(default_factory=dict)


def count_experiments(experiment_ids: Sequence[int]) -> dict[int, ExperimentCounts]:
    """Count for each of these experiments, in four queries."""
    by_experiment = {experiment_id: ExperimentCounts() for experiment_id in experiment_ids}
    runs = Run.objects.filter(experiment__in=by_experiment).order_by()
    for experiment, state, count in runs.values_list("experiment_id", "state").annotate(Count("pk")):
        by_experiment[experiment].boots_total += count
        by_experiment[experiment].boots_over += count if state in OVER else 0
    variants = Variant.objects.filter(experiment__in=by_experiment).values_list(
        "pk", "experiment_id", "state", "role"
    )
    cases = Case.objects.filter(experiment__in=by_experiment).order_by().values_list("experiment_id")
    case_numbers = dict(cases.annotate(Count("pk")))
    candidates: set[int] = set()
    for variant, experiment, state, role in variants.order_by():
        pruned, candidate = state == VariantState.PRUNED, role == Role.CANDIDATE
        by_experiment[experiment].pruned += pruned
        by_experiment[experiment].variants += not pruned
        if candidate:
            by_experiment[experiment].unjudged += 0 if pruned else case_numbers.get(experiment, 0)
            candidates.add(variant)
    _count_verdicts(by_experiment, candidates)
    return by_experiment


def _count_verdicts(by_experiment: Mapping[int, ExperimentCounts], candidates: Container[int]) -> None:
    """Count the verdicts of primary metrics. By key: a join with variants would read all of them."""
    rows = Comparison.objects.filter(experiment__in=by_experiment, primary=True).order_by(
        "experiment_id", "verdict"
    )
    judged: set[tuple[int, int]] = set()
    for experiment, variant, case, verdict in rows.values_list(
        "experiment_id", "variant_id", "case_id", "verdict"
    ):
        if variant in candidates:
            counts = by_experiment[experiment]
            counts.verdicts[verdict] = counts.verdicts.get(verdict, 0) + 1
            counts.unjudged -= (variant, case) not in judged
            judged.add((variant, case))


EXIT_OK, EXIT_REGRESSION, EXIT_UNKNOWN, EXIT_LAB = 0, 1, 2, 3


def exit_code(state: str, counts: ExperimentCounts) -> int:
    """Return 0 for no regression, 1 for one, 2 if the data are inconclusive or a verdict is missing, 3 if it failed or was cancelled.

    counts: with the verdicts on candidates' primary metrics.
    """
    if state in {"failed", "cancelled"}:
        return EXIT_LAB
    codes = {shown_verdict(word).exit_code for word, count in counts.verdicts.items() if count}
    if EXIT_REGRESSION in codes:
        return EXIT_REGRESSION
    return EXIT_UNKNOWN if EXIT_UNKNOWN in codes or not codes or counts.unjudged else EXIT_OK
