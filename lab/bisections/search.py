# SPDX-License-Identifier: GPL-2.0-or-later
"""Bisections: which commit of a range changed a metric. Each step is an ordinary experiment of the good revision
with `good..mid` as its one switch, so its verdict is made as every other is.

    start_bisection → take_step → (submit step_spec, attach) → work → conclude_step → take_step → …

Everything is in the tables before it is worked on, so the same command continues after a kill at any point. A fault of
the lab says nothing about a revision: it is retried, and the bisection fails after MOST_FAULTS of them.
lab/bisections/outcome.py says what an experiment means; docs/trends.md tells it all in prose.
"""

from typing import Any

from django.db import transaction
from django.utils import timezone

from lab.bisections.outcome import Conclusion, conclude, more_boots
from lab.bisections.start import BisectionRequest, description
from lab.bisections.strategy import Compare, NoStep, RevisionAnswer, StepFound, decide
from lab.errors import one_row
from lab.experiments.spec import ExperimentSpec
from lab.from_attributes import attributes
from lab.models import Bisection, BisectionStep, Revision
from lab.models.states import BisectionState, move

MOST_FAULTS = 3
Outcome = BisectionStep.Outcome
ANSWERS = {
    Outcome.GOOD: RevisionAnswer.GOOD,
    Outcome.BAD: RevisionAnswer.BAD,
    Outcome.SKIPPED: RevisionAnswer.UNTOLD,
    Outcome.AMBIGUOUS: RevisionAnswer.UNTOLD,
}


def get_bisection(bisection_id: int) -> Bisection:
    """Return the row. Raises UnknownRow."""
    return one_row(
        Bisection.objects.select_related("tree", "target").filter(pk=bisection_id),
        f"bisection {bisection_id}",
    )


def take_step(bisection_id: int) -> BisectionStep | None:
    """Return the step to work on: the open one, else the next; None when the bisection is over, which ends it here."""
    with transaction.atomic():
        row = Bisection.objects.select_for_update().get(pk=bisection_id)
        steps = list(row.steps.all())
        if row.state != BisectionState.RUNNING:
            return None
        if open_step := next((step for step in steps if not step.outcome), None):
            return open_step
        answers = {step.revision: ANSWERS[Outcome(step.outcome)] for step in steps if step.outcome in ANSWERS}
        decision = decide(len(row.line) - 1, answers)
        if not isinstance(decision, Compare):
            _finish(row, decision)
            return None
        boots = row.boots
        for step in steps:
            if step.revision == decision.revision and step.outcome == Outcome.AGAIN:
                boots = more_boots(step)
        return BisectionStep.objects.create(
            bisection=row, number=len(steps) + 1, revision=decision.revision, boots=boots
        )


def step_spec(step: BisectionStep) -> ExperimentSpec:
    """Describe the experiment of a step: the same at every call, so that one already queued is found."""
    row = get_bisection(step.bisection_id)
    commit = row.line[step.revision]
    known = Revision.objects.filter(tree=row.tree, commit=commit).first()
    asked = BisectionRequest(
        tree=row.tree.name,
        good=row.line[0],
        bad=row.line[-1],
        target=row.target.name,
        **attributes(row, ("workload", "preset", "params", "clock", "iterations")),
    )
    name = f"bisection {row.pk}, step {step.number}: {known.subject if known else commit[:12]}"
    return description(asked, commit, name=name, switch=commit[:12], boots=step.boots, seed=step.number)


def attach(step_id: int, experiment_id: int) -> None:
    """Note which experiment works on a step."""
    BisectionStep.objects.filter(pk=step_id).update(experiment=experiment_id)


def conclude_step(step_id: int) -> BisectionStep:
    """Conclude a step from its finished experiment and store the conclusion; doing it twice changes nothing."""
    step = BisectionStep.objects.select_related("bisection", "experiment").get(pk=step_id)
    return settle_step(step_id, conclude(step))


def settle_step(step_id: int, conclusion: Conclusion) -> BisectionStep:
    """Write an open step's conclusion down, and fail the bisection where it cannot go on."""
    with transaction.atomic():
        BisectionStep.objects.filter(pk=step_id, outcome="").update(
            finished_at=timezone.now(),
            **attributes(conclusion, ("outcome", "verdict", "ratio", "low", "high", "reason")),
        )
        step = BisectionStep.objects.select_related("bisection", "experiment").get(pk=step_id)
        faults = step.bisection.steps.filter(outcome=Outcome.FAULT, revision=step.revision).count()
        if conclusion.hopeless or faults >= MOST_FAULTS:
            _end(step.bisection, BisectionState.FAILED, problem=conclusion.reason)
    return step


def _finish(row: Bisection, decision: StepFound | NoStep) -> None:
    if isinstance(decision, StepFound):
        suspects = [row.line[number] for number in decision.suspects]
        answer = Bisection.Answer.COMMIT if len(suspects) == 1 else Bisection.Answer.RANGE
        _end(row, BisectionState.DONE, answer=answer, suspects=suspects)
    else:
        answer = Bisection.Answer.NO_STEP if decision.is_compared else Bisection.Answer.UNTOLD
        _end(row, BisectionState.DONE, answer=answer)


def _end(row: Bisection, to: BisectionState, **fields: Any) -> None:
    move(Bisection, row.pk, BisectionState.RUNNING, to, finished_at=timezone.now(), **fields)
