# SPDX-License-Identifier: GPL-2.0-or-later
"""Read bisections for pages: each step and its answer, and the conclusion."""

from dataclasses import dataclass

from django.db.models import Q

from lab.errors import one_row
from lab.models import Bisection, BisectionStep, Revision
from lab.models.states import BisectionState
from lab.trends.page import RevisionView, StepView, TrendLine


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
class BisectionLine:
    """A bisection of the list. commits: after the good one. done: steps that are over."""

    row: Bisection
    title: str
    commits: int
    done: int

    @property
    def answered(self) -> str:
        """Return the result in a few words."""
        row = self.row
        if row.state != BisectionState.DONE:
            return row.state
        if row.answer == Bisection.Answer.COMMIT:
            return f"found {row.suspects[0][:10]}"
        if row.answer == Bisection.Answer.RANGE:
            return f"one of {len(row.suspects)} commits"
        return "no step there" if row.answer == Bisection.Answer.NO_STEP else "cannot be told"


@dataclass(frozen=True, slots=True)
class BisectionPage:
    """A bisection. verdict: what is searched for. answer: commit, range, no-step, untold, or empty while it runs or where it failed.

    left: commits of which one brought it, as far as is known. shift: the earliest bad comparison. before: what the last good revision showed already.
    """

    id: int
    title: str
    tree: str
    target: str
    clock: str
    metric: str
    verdict: str
    commits: int
    left: int
    good: RevisionView
    bad: RevisionView
    state: str
    answer: str
    problem: str
    suspects: tuple[RevisionView, ...]
    steps: tuple[BisectionStepView, ...]
    shift: BisectionStepView | None
    before: BisectionStepView | None


def bisection_list() -> tuple[BisectionLine, ...]:
    """All bisections, the newest first."""
    rows = Bisection.objects.select_related("tree", "target").prefetch_related("steps")
    return tuple(_line(row) for row in rows)


def bisections_of(line: TrendLine, step: StepView) -> tuple[BisectionLine, ...]:
    """The bisections that search a step of a trend: same case, its commits within theirs; the newest first."""
    rows = Bisection.objects.filter(
        tree=line.tree_id,
        workload=line.workload,
        preset=line.preset,
        metric=line.metric,
        clock=line.clock,
        verdict=step.verdict,
    )
    ends = {step.good.commit, step.bad.commit}
    rows = rows.filter(Q(target__group=line.target) | Q(target__group="", target__name=line.target))
    rows = rows.select_related("tree", "target").prefetch_related("steps")
    return tuple(_line(row) for row in rows if row.params == line.params and ends <= set(row.line))


def _line(row: Bisection) -> BisectionLine:
    return BisectionLine(
        row=row,
        title=_title(row),
        commits=len(row.line) - 1,
        done=sum(bool(step.outcome) for step in row.steps.all()),
    )


def _title(row: Bisection) -> str:
    return f"{row.metric} of {row.workload} ({row.preset}), {row.good_name}..{row.bad_name}"


def bisection_page(bisection_id: int) -> BisectionPage:
    """Return one bisection. Raises UnknownRow."""
    row = one_row(
        Bisection.objects.select_related("tree", "target").filter(pk=bisection_id),
        f"bisection {bisection_id}",
    )
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
        title=_title(row),
        tree=row.tree.name,
        target=row.target.name,
        clock=row.clock,
        metric=row.metric,
        verdict=row.verdict,
        commits=len(line) - 1,
        left=(first.revision if first else len(line) - 1) - (last.revision if last else 0),
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
