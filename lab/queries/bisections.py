# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads of bisections: what each step said, and what came of it."""

from dataclasses import dataclass

from lab.errors import UnknownRow
from lab.models import Bisection, BisectionStep, Revision
from lab.queries.trends import RevisionView


@dataclass(frozen=True, slots=True)
class BisectionStepView:
    """One comparison with the good revision; outcome is empty while it is open."""

    number: int
    revision: RevisionView
    outcome: str
    verdict: str
    ratio: float | None
    low: float | None
    high: float | None
    reason: str
    experiment: int | None


@dataclass(frozen=True, slots=True)
class BisectionPage:
    """A bisection. answer: commit, range, no-step, untold, or empty while it runs or where it failed.

    shift: the earliest bad comparison. before: what the last good revision showed already.
    """

    id: int
    title: str
    tree: str
    metric: str
    good: RevisionView
    bad: RevisionView
    state: str
    answer: str
    problem: str
    suspects: tuple[RevisionView, ...]
    steps: tuple[BisectionStepView, ...]
    shift: BisectionStepView | None
    before: BisectionStepView | None


def bisection_page(bisection_id: int) -> BisectionPage:
    """Return one bisection. Raises UnknownRow."""
    row = Bisection.objects.select_related("tree").filter(pk=bisection_id).first()
    if row is None:
        raise UnknownRow(f"there is no bisection {bisection_id}")
    known = {
        one.commit: RevisionView(one.commit, one.subject, one.author, one.position)
        for one in Revision.objects.filter(tree=row.tree, commit__in=row.line)
    }
    line = [known.get(commit, RevisionView(commit, "", "", place)) for place, commit in enumerate(row.line)]
    steps = list(row.steps.all())
    bad = [step for step in steps if step.outcome == BisectionStep.Outcome.BAD]
    first = min(bad, key=lambda step: step.revision, default=None)
    good = [step for step in steps if step.outcome == BisectionStep.Outcome.GOOD]
    below = [step for step in good if first and step.revision < first.revision]
    last = max(below, key=lambda step: step.revision, default=None)
    return BisectionPage(
        id=row.pk,
        title=f"{row.metric} of {row.workload} ({row.preset}), {row.good_name}..{row.bad_name}",
        tree=row.tree.name,
        metric=row.metric,
        good=line[0],
        bad=line[-1],
        state=row.state,
        answer=row.answer,
        problem=row.problem,
        suspects=tuple(view for view in line if view.commit in row.suspects),
        steps=tuple(_step(line, step) for step in steps),
        shift=_step(line, first) if first else None,
        before=_step(line, last) if last else None,
    )


def _step(line: list[RevisionView], step: BisectionStep) -> BisectionStepView:
    return BisectionStepView(
        number=step.number,
        revision=line[step.revision],
        outcome=step.outcome,
        verdict=step.verdict,
        ratio=step.ratio,
        low=step.low,
        high=step.high,
        reason=step.reason,
        experiment=step.experiment_id,
    )
