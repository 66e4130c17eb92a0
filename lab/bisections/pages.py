# SPDX-License-Identifier: GPL-2.0-or-later
"""Read bisections for pages: each step and its answer, and the conclusion."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.paginator import Page

from lab.bisections.search import get_bisection
from lab.from_attributes import from_attributes
from lab.models import BasePoint, Bisection, BisectionStep, Revision
from lab.models.bounded import leaf
from lab.models.states import BisectionState
from lab.trends.page import RevisionView, StepView, TrendLine

PAGE_SIZE = 50
# What a bisection and the trend whose step it searches have in common, beside parameters, verdict and place.
_CASE = ("tree_id", "workload", "preset", "metric", "clock")


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
    """A bisection with its revisions. commits: after the good one. left: how many of them may have caused the step.

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
    """Return the bisections that search each of these steps, in four queries."""
    by_case = _commits_by_case([line for line, _ in steps])
    found = [
        [
            bisection
            for bisection, params, commits in by_case.get(_case(line, step), ())
            if params == line.params and {step.good.commit, step.bad.commit} <= set(commits)
        ]
        for line, step in steps
    ]
    keys = {bisection for of in found for bisection in of}
    configs = _configs(keys)
    known = Bisection.objects.select_related("tree", "target").prefetch_related("steps").in_bulk(keys)
    return [
        tuple(
            _line(known[bisection])
            for bisection in of
            # Nothing is known of one that has measured nothing yet.
            if bisection in known and line.config in configs.get(bisection, {line.config})
        )
        for (line, _), of in zip(steps, found, strict=True)
    ]


def _configs(bisections: Collection[int]) -> Mapping[int, set[str]]:
    """Return by bisection the configs of the kernels that it has measured, as trends name them."""
    points = BasePoint.objects.filter(case__experiment__bisectionstep__bisection__in=bisections)
    configs: dict[int, set[str]] = defaultdict(set)
    for bisection, config in points.values_list("case__experiment__bisectionstep__bisection", "config"):
        configs[bisection].add(config)
    return configs


def _commits_by_case(
    lines: Sequence[TrendLine],
) -> Mapping[tuple[Any, ...], list[tuple[int, Any, list[str]]]]:
    """Return by case the bisections that could search these trends: their number, parameters and commits; the newest first."""
    rows = Bisection.objects.filter(
        tree__in={line.tree_id for line in lines},
        workload__in={line.workload for line in lines},
        metric__in={line.metric for line in lines},
    )
    by_case: dict[tuple[Any, ...], list[tuple[int, Any, list[str]]]] = defaultdict(list)
    # A lab has hundreds, and few of them match: only those become rows of the model.
    for bisection, params, commits, group, name, *case in rows.order_by("-pk").values_list(
        "pk", "params", "line", "target__group", "target__name", *_CASE, "verdict"
    ):
        by_case[*case, group or name].append((bisection, params, commits))
    return by_case


def _case(line: TrendLine, step: StepView) -> tuple[Any, ...]:
    return *(getattr(line, column) for column in _CASE), step.verdict, line.target


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
