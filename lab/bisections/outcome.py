# SPDX-License-Identifier: GPL-2.0-or-later
"""Judge the revision that a bisection's step compared, from its experiment.

A revision with the verdict searched for is bad; with the opposite or unchanged it is good. An inconclusive one is repeated with
twice the boots, up to a bound, and is then ambiguous. A kernel that did not build, boot or survive is skipped: it says
nothing about the metric. A fault of the lab says nothing at all.
"""

from dataclasses import dataclass

from lab.from_attributes import attributes
from lab.models import BisectionStep, Comparison, Run, Variant
from lab.models.states import ExperimentState, Purpose, Role, RunState, VariantState
from lab.statistics.sequential import LOOKS
from lab.statistics.verdict_words import kind_of

Outcome = BisectionStep.Outcome


@dataclass(frozen=True, slots=True)
class Conclusion:
    """hopeless: the bisection cannot go on, such as when the good revision itself does not boot."""

    outcome: BisectionStep.Outcome
    reason: str = ""
    verdict: str = ""
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    hopeless: bool = False


def more_boots(step: BisectionStep) -> int:
    """Return twice the boots of an inconclusive step; 0 means as many as early stopping takes."""
    return 2 * (step.boots or LOOKS[-1])


def conclude(step: BisectionStep) -> Conclusion:
    """Judge a step by its finished experiment."""
    experiment = step.experiment
    if experiment is None:
        return Conclusion(Outcome.FAULT, "its experiment is gone")
    if experiment.state not in {ExperimentState.DONE, ExperimentState.FAILED}:
        return Conclusion(Outcome.FAULT, f"experiment {experiment.pk} is {experiment.state}")
    base = experiment.variants.get(role=Role.BASE)
    if experiment.state == ExperimentState.FAILED:
        blame, problem = _trouble(base)
        if blame == "lab":
            return Conclusion(Outcome.FAULT, experiment.problem or problem)
        return Conclusion(Outcome.FAULT, f"the good revision: {experiment.problem}", hopeless=True)
    candidate = experiment.variants.get(role=Role.CANDIDATE)
    comparison = Comparison.objects.filter(variant=candidate, metric=step.bisection.metric).first()
    is_decided = comparison is not None and kind_of(comparison.verdict) != "inconclusive"
    # Boots that the lab lost say nothing, and leave the others comparable.
    is_measured = comparison is not None and comparison.boots_needed is not None
    blame, problem = _trouble(candidate)
    if blame and not is_decided and not (blame == "lab" and is_measured):
        outcome = Outcome.FAULT if blame == "lab" else Outcome.SKIPPED
        return Conclusion(outcome, problem)
    if comparison is None:
        return Conclusion(Outcome.FAULT, f"experiment {experiment.pk} compared nothing")
    return _judged(step, comparison)


def refused(exc: Exception) -> Conclusion:
    """Skip a revision whose commits cannot be taken as patches, with the reason."""
    return Conclusion(Outcome.SKIPPED, str(exc))


def _judged(step: BisectionStep, comparison: Comparison) -> Conclusion:
    if kind_of(comparison.verdict) == step.bisection.verdict:
        outcome = Outcome.BAD
    elif kind_of(comparison.verdict) != "inconclusive":
        outcome = Outcome.GOOD
    elif comparison.boots_needed is not None and more_boots(step) <= step.bisection.most_boots:
        outcome = Outcome.AGAIN
    else:
        outcome = Outcome.AMBIGUOUS
    return Conclusion(outcome, **attributes(comparison, ("reason", "verdict", "ratio", "low", "high")))


def _trouble(variant: Variant) -> tuple[str, str]:
    """Return the blame and the problem that kept a variant from being measured; empty if nothing did."""
    if variant.state in {VariantState.FAILED, VariantState.PRUNED}:
        blame = variant.build.blame if variant.build else ""
        return blame or "submission", variant.problem
    runs = Run.objects.filter(variant=variant, purpose=Purpose.MEASURED)
    failed = list(runs.filter(state=RunState.FAILED).order_by("pk"))
    # One kernel that crashes says more than any number of boots that the lab lost.
    worst = next((run for run in failed if run.blame != "lab"), failed[0] if failed else None)
    if worst is None:
        return "", ""
    return worst.blame or "lab", f"{worst.outcome}: {worst.problem}"
