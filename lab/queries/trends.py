# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads of trends: one metric of one case over the measured revisions of a tree, and its steps.

A point is a revision that experiments stood on; its numbers are the boots of their base, and of the base once more,
that finished inside their gates. Kernels of different configs are different trends, and so are clocks and targets.
"""

import hashlib
import json
from collections import defaultdict
from dataclasses import dataclass
from statistics import median
from typing import Any

from lab.analysis.steps import Step, find_steps
from lab.errors import UnknownRow
from lab.models import Case, Revision, Sample, Variant
from lab.states import Purpose, Role, RunState

# Pairs of a base variant and a case.
Cells = list[tuple[int, int]]
# Fewer revisions show no course.
LEAST_POINTS = 2
# Longer ranges are shown by their ends.
MOST_LISTED = 100


@dataclass(frozen=True, slots=True)
class RevisionView:
    """A commit as pages show it."""

    commit: str
    subject: str
    author: str
    position: int


@dataclass(frozen=True, slots=True)
class Point:
    """One measured revision: the median of its boots, the lowest and the highest."""

    revision: RevisionView
    median: float
    low: float
    high: float
    boots: int
    experiments: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StepView:
    """A step between two measured revisions; index counts points. verdict: regression or improvement.

    suspects: commits after the last good point up to the first bad one; unlisted: how many more there are.
    earliest, latest: points between which the step lies with 95 % confidence.
    """

    index: int
    good: RevisionView
    bad: RevisionView
    earliest: RevisionView
    latest: RevisionView
    suspects: tuple[RevisionView, ...]
    unlisted: int
    before: float
    after: float
    ratio: float | None
    low: float | None
    high: float | None
    p_value: float | None
    verdict: str
    pending: bool


@dataclass(frozen=True, slots=True)
class TrendLine:
    """A trend by what makes it one; key addresses it."""

    key: str
    tree: str
    tree_id: int
    workload: str
    preset: str
    params: dict[str, Any]
    target: str
    clock: str
    config: str
    metric: str
    unit: str
    better: str
    margin: float
    primary: bool

    @property
    def title(self) -> str:
        """What a person would call it: "ns_per_open of showgids (smoke)"."""
        return f"{self.metric} of {self.workload} ({self.preset})"


@dataclass(frozen=True, slots=True)
class TrendPage:
    """A trend with its points in the order of the tree's history, and its steps.

    unplaced: measured revisions whose place in the history nobody noted; they are not points.
    """

    line: TrendLine
    points: tuple[Point, ...]
    steps: tuple[StepView, ...]
    unplaced: int


def trend_list(*, all_metrics: bool = False) -> tuple[TrendPage, ...]:
    """Return the trends with at least two points, those of primary metrics only unless `all_metrics`."""
    found = _cells(all_metrics=all_metrics)
    pages = (_page(line, cells) for line, cells in found.values())
    return tuple(page for page in pages if len(page.points) >= LEAST_POINTS)


def trend_page(key: str) -> TrendPage:
    """Return one trend. Raises UnknownRow."""
    found = _cells(all_metrics=True)
    if key not in found:
        raise UnknownRow(f'there is no trend "{key}"')
    return _page(*found[key])


def _cells(*, all_metrics: bool) -> dict[str, tuple[TrendLine, Cells]]:
    """Every trend by key, with what was measured for it."""
    bases: dict[int, list[tuple[int, str]]] = defaultdict(list)
    rows = Variant.objects.filter(role__in=(Role.BASE, Role.AA)).exclude(build=None).order_by("pk")
    for pk, experiment, fragments, cc in rows.values_list(
        "pk", "experiment_id", "build__request__fragments", "build__request__cc"
    ):
        bases[experiment].append((pk, hashlib.sha256(json.dumps([fragments, cc]).encode()).hexdigest()[:8]))
    cases = Case.objects.filter(experiment__in=bases).select_related("experiment__tree", "experiment__target")
    found: dict[str, tuple[TrendLine, Cells]] = {}
    for case in cases.order_by("experiment__tree__name", "workload", "preset", "pk"):
        for pk, config in bases[case.experiment_id]:
            for metric in case.metrics:
                if metric["primary"] or all_metrics:
                    line = _line(case, metric, config)
                    # The latest case says what the metric's margin is.
                    cells = found[line.key][1] if line.key in found else []
                    found[line.key] = (line, [*cells, (pk, case.pk)])
    return found


def _line(case: Case, metric: dict[str, Any], config: str) -> TrendLine:
    experiment = case.experiment
    identity = [
        experiment.tree.name,
        case.workload,
        case.params,
        experiment.target.name,
        experiment.clock,
        config,
        metric["name"],
    ]
    return TrendLine(
        key=hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:12],
        tree=experiment.tree.name,
        tree_id=experiment.tree_id,
        workload=case.workload,
        preset=case.preset,
        params=case.params,
        target=experiment.target.name,
        clock=experiment.clock,
        config=config,
        metric=metric["name"],
        unit=metric["unit"],
        better=metric["better"],
        margin=metric["margin"],
        primary=metric["primary"],
    )


def _page(line: TrendLine, cells: Cells) -> TrendPage:
    boots, experiments = _boots(line.metric, cells)
    places = {row.commit: _view(row) for row in Revision.objects.filter(tree=line.tree_id, commit__in=boots)}
    order = sorted(places.values(), key=lambda one: (one.position, one.commit))
    points = tuple(_point(one, boots[one.commit], experiments[one.commit]) for one in order)
    steps = find_steps([boots[one.commit] for one in order], margin=line.margin) if points else []
    views = tuple(_step(line, points, step) for step in steps)
    return TrendPage(line, points, views, len(boots) - len(points))


def _boots(metric: str, cells: Cells) -> tuple[dict[str, list[float]], dict[str, set[int]]]:
    """By base commit: the medians of the boots that count, and the experiments they are from."""
    wanted = set(cells)
    samples = Sample.objects.filter(
        run__variant__in={variant for variant, _ in wanted},
        run__case__in={case for _, case in wanted},
        run__purpose=Purpose.MEASURED,
        run__state=RunState.DONE,
        run__invalid=[],
        metric=metric,
        warmup=False,
    ).order_by("run_id", "iteration")
    values: dict[tuple[int, str, int], list[float]] = defaultdict(list)
    for run, commit, experiment, value in samples.values_list(
        "run_id", "run__experiment__base_commit", "run__experiment_id", "value"
    ):
        values[run, commit, experiment].append(value)
    boots: dict[str, list[float]] = defaultdict(list)
    experiments: dict[str, set[int]] = defaultdict(set)
    for (_, commit, experiment), iterations in values.items():
        boots[commit].append(median(iterations))
        experiments[commit].add(experiment)
    return boots, experiments


def _point(revision: RevisionView, boots: list[float], experiments: set[int]) -> Point:
    return Point(revision, median(boots), min(boots), max(boots), len(boots), tuple(sorted(experiments)))


def _step(line: TrendLine, points: tuple[Point, ...], step: Step) -> StepView:
    good, bad = points[step.at - 1].revision, points[step.at].revision
    between = Revision.objects.filter(
        tree=line.tree_id, position__gt=good.position, position__lte=bad.position
    )
    suspects = tuple(_view(row) for row in between[:MOST_LISTED])
    rises = step.after > step.before
    worse = rises == (line.better == "lower")
    return StepView(
        index=step.at,
        good=good,
        bad=bad,
        earliest=points[step.earliest].revision,
        latest=points[step.latest].revision,
        suspects=suspects,
        unlisted=bad.position - good.position - len(suspects),
        before=step.before,
        after=step.after,
        ratio=step.ratio,
        low=step.low,
        high=step.high,
        p_value=step.p_value,
        verdict="regression" if worse else "improvement",
        pending=step.pending,
    )


def _view(row: Revision) -> RevisionView:
    return RevisionView(row.commit, row.subject, row.author, row.position)
