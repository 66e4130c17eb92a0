# SPDX-License-Identifier: GPL-2.0-or-later
"""Read bisections for pages: each step and its answer, and the conclusion."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.core.paginator import Page
from django.db.models import prefetch_related_objects

from lab.bisections.search import get_bisection
from lab.from_attributes import from_attributes
from lab.models import Bisection, BisectionStep, Revision
from lab.models.bounded import leaf
from lab.models.states import BisectionState
from lab.trends.page import RevisionView, StepView, TrendLine

PAGE_SIZE = 50


@dataclass(frozen=True, slots=True)
class BisectionStepView:
    """One comparison with the good revision, and the revision that is compared."""

    row: BisectionStep
    revision: RevisionView


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
        return "no step there" if row.answer == Bisection.Answer.NO_STEP else "inconclusive"


@dataclass(frozen=True, slots=True)
class BisectionPage:
    """A bisection with its revisions. commits: after the good one. left: of them one brought the step, as far as is known.

    shift: the earliest bad comparison. before: what the last good revision showed already.
    """

    row: Bisection
    title: str
    commits: int
    left: int
    good: RevisionView
    bad: RevisionView
    suspects: tuple[RevisionView, ...]
    steps: tuple[BisectionStepView, ...]
    shift: BisectionStep | None
    before: BisectionStepView | None


def bisection_list(number: int = 1) -> tuple[tuple[BisectionLine, ...], Page[Bisection]]:
    """Return one page of all bisections, the newest first; a number beyond the last is the last."""
    rows = Bisection.objects.select_related("tree", "target").prefetch_related("steps").order_by("-pk")
    page = leaf(rows, PAGE_SIZE, number)
    return tuple(_line(row) for row in page), page


def bisections_of(line: TrendLine, step: StepView) -> tuple[BisectionLine, ...]:
    """The bisections that search a step of a trend: same case, its commits within theirs; the newest first."""
    return bisections_of_each([(line, step)])[0]


def bisections_of_each(steps: Sequence[tuple[TrendLine, StepView]]) -> list[tuple[BisectionLine, ...]]:
    """Return the bisections that search each of these steps, in two questions."""
    rows = list(
        Bisection.objects.filter(
            tree__in={line.tree_id for line, _ in steps},
            workload__in={line.workload for line, _ in steps},
            metric__in={line.metric for line, _ in steps},
        ).select_related("tree", "target")
        if steps
        else ()
    )
    matches = [[row for row in rows if _searches(row, line, step)] for line, step in steps]
    # Many search other cases: what they did is not read.
    prefetch_related_objects(list({row.pk: row for of in matches for row in of}.values()), "steps")
    return [tuple(map(_line, of)) for of in matches]


def _searches(row: Bisection, line: TrendLine, step: StepView) -> bool:
    case = (row.tree_id, row.workload, row.preset, row.metric, row.clock, row.params, row.verdict)
    asked = (line.tree_id, line.workload, line.preset, line.metric, line.clock, line.params, step.verdict)
    there = (row.target.group or row.target.name) == line.target
    return case == asked and there and {step.good.commit, step.bad.commit} <= set(row.line)


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
    row = get_bisection(bisection_id)
    known = {
        revision.commit: from_attributes(RevisionView, revision)
        for revision in Revision.objects.filter(tree=row.tree, commit__in=row.line)
    }
    line = [known.get(commit, RevisionView(commit, "", "", place)) for place, commit in enumerate(row.line)]
    steps = list(row.steps.all())
    bad = [step for step in steps if step.outcome == BisectionStep.Outcome.BAD]
    first = min(bad, key=lambda step: step.revision, default=None)
    good = [step for step in steps if step.outcome == BisectionStep.Outcome.GOOD]
    below = [step for step in good if first and step.revision < first.revision]
    last = max(below, key=lambda step: step.revision, default=None)
    return BisectionPage(
        row=row,
        title=_title(row),
        commits=len(line) - 1,
        left=(first.revision if first else len(line) - 1) - (last.revision if last else 0),
        good=line[0],
        bad=line[-1],
        suspects=tuple(view for view in line if view.commit in row.suspects),
        steps=tuple(BisectionStepView(step, line[step.revision]) for step in steps),
        shift=first,
        before=BisectionStepView(last, line[last.revision]) if last else None,
    )
