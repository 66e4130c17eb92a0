# SPDX-License-Identifier: GPL-2.0-or-later
"""Read trends: one metric of one case over the measured revisions of a tree's branch, and its steps.

A trend of another branch than the default one begins with the points of the default branch up to the fork. A point is a revision that experiments had as base; its numbers are the boots of that base, and of its A/A twin,
that finished inside their gates. lab/trends/base_points.py says what makes a trend.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from django.db.models import Q, QuerySet

from lab.errors import FieldRefused, UnknownRow
from lab.from_attributes import from_attributes
from lab.models import BasePoint, Case, Revision
from lab.statistics.trend_steps import TrendStep, find_steps
from lab.trends.identity import identity_of

# Fewer revisions are not a trend.
LEAST_POINTS = 2
# Of more suspects only the first are listed.
MOST_LISTED = 100
# A query that names more commits would be too long; whole trees are read instead.
MOST_NAMED = 500


@dataclass(frozen=True, slots=True)
class RevisionView:
    """A commit as pages show it."""

    commit: str
    subject: str
    author: str
    position: int


# By tree and commit.
Places = Mapping[tuple[int, str], RevisionView]


@dataclass(frozen=True, slots=True)
class _Measured:
    """One row of BasePoint."""

    case: int
    metric: str
    config: str
    commit: str
    boots: tuple[float, ...]
    experiment: int
    fork: int | None


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
    why: str


@dataclass(frozen=True, slots=True)
class TrendLine:
    """The identity of a trend; key addresses it. target: the name of a group, or of a target outside any group.

    branch: "" for the tree's default branch, with revisions of unknown branches. trunk: the key of the same trend on the default
    branch, "" for that one itself.
    """

    key: str
    tree: str
    tree_id: int
    branch: str
    trunk: str
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
        """Return its title for people: "ns_per_open of showgids (smoke)"."""
        return f"{self.metric} of {self.workload} ({self.preset})"

    @property
    def place(self) -> str:
        """Return the tree and, unless it is the default branch, the branch for people: "linux, branch linux-6.1.y"."""
        return f"{self.tree}, branch {self.branch}" if self.branch else self.tree


@dataclass(frozen=True, slots=True)
class TrendPage:
    """A trend with its points in the order of the tree's history, and its steps.

    unplaced: measured revisions whose place in the history was not recorded; they are not points. shared: number of first points
    that are of the default branch, before the branch of this trend forked off; fork: the last position of such points, None
    if there are none or the fork is not known.
    """

    line: TrendLine
    points: tuple[Point, ...]
    steps: tuple[StepView, ...]
    unplaced: int
    shared: int = 0
    fork: int | None = None

    @property
    def own(self) -> int:
        """Return the number of points that no trend of the default branch has."""
        return len(self.points) - self.shared


def trend_list() -> tuple[TrendPage, ...]:
    """Return the trends of primary metrics with at least two points of their own."""
    pages = _pages(BasePoint.objects.filter(primary=True))
    return tuple(page for page in pages if page.own >= LEAST_POINTS)


def trend_page(key: str) -> TrendPage:
    """Return one trend. Raises UnknownRow."""
    pages = _pages(BasePoint.objects.filter(trend=key))
    if not pages:
        raise UnknownRow(f'there is no trend "{key}"')
    return pages[0]


def trend_pages(keys: Sequence[str]) -> dict[str, TrendPage]:
    """Return these trends by key; those without points are missing."""
    return {page.line.key: page for page in _pages(BasePoint.objects.filter(trend__in=keys))}


def fed_by(standing_id: int) -> tuple[TrendPage, ...]:
    """Return the trends of primary metrics to which a standing experiment has added points."""
    own = BasePoint.objects.filter(case__experiment__standing=standing_id, primary=True)
    return tuple(_pages(BasePoint.objects.filter(trend__in=own.values("trend"))))


def measured_revision(page: TrendPage, name: str) -> Revision:
    """Return the one measured revision of a trend whose commit begins with `name`. Raises FieldRefused for "revision"."""
    wanted = name.strip().lower()
    commits = [point.revision.commit for point in page.points if point.revision.commit.startswith(wanted)]
    if not wanted or not commits:
        newest = f"; the newest is {page.points[-1].revision.commit[:10]}" if page.points else ""
        predicate = f'begins with "{name.strip()[:40]}"' if wanted else "is named"
        raise FieldRefused("revision", f"no measured revision of this trend {predicate}{newest}")
    if len(commits) > 1:
        raise FieldRefused(
            "revision", f'{len(commits)} revisions begin with "{wanted}": {", ".join(commits[:3])}'
        )
    return Revision.objects.get(tree=page.line.tree_id, commit=commits[0])


def _pages(rows: QuerySet[BasePoint]) -> list[TrendPage]:
    """The trends of these rows, by tree, workload and preset."""
    by_trend = _measured(rows)
    # The margin of the metric comes from the latest case.
    latest = {measured[-1].case for measured in by_trend.values()}
    cases = Case.objects.select_related("experiment__tree", "experiment__target").in_bulk(latest)
    lines = [(_line(key, cases[of[-1].case], of[-1]), of) for key, of in by_trend.items()]
    lines.sort(key=lambda pair: (pair[0].tree, pair[0].workload, pair[0].preset))
    # A branch's trend is often read without the one that it shares points with.
    trunks = _measured(BasePoint.objects.filter(trend__in={line.trunk for line, _ in lines if line.trunk}))
    revisions = _revisions([*lines, *((line, trunks.get(line.trunk, [])) for line, _ in lines)])
    return [_page(line, measured, trunks.get(line.trunk, []), revisions) for line, measured in lines]


def _measured(rows: QuerySet[BasePoint]) -> dict[str, list[_Measured]]:
    by_trend: dict[str, list[_Measured]] = defaultdict(list)
    columns = ("case_id", "metric", "config", "commit", "boots", "case__experiment_id")
    for trend, case, metric, config, commit, boots, experiment, fork in rows.order_by(
        "case_id", "pk"
    ).values_list("trend", *columns, "case__experiment__base_fork"):
        by_trend[trend].append(_Measured(case, metric, config, commit, tuple(boots), experiment, fork))
    return by_trend


def _line(key: str, case: Case, measured: _Measured) -> TrendLine:
    identity = identity_of(measured.metric, measured.config, case)
    identity |= {"tree": case.experiment.tree.name, "tree_id": case.experiment.tree_id}
    del identity["latest_case"]
    return TrendLine(key=key, **identity)


def _revisions(lines: list[tuple[TrendLine, list[_Measured]]]) -> Places:
    commits = {base_point.commit for _, measured in lines for base_point in measured}
    rows = Revision.objects.filter(tree__in={line.tree_id for line, _ in lines})
    if len(commits) < MOST_NAMED:
        rows = rows.filter(commit__in=commits)
    return {(row.tree_id, row.commit): _view(row) for row in rows}


def _page(line: TrendLine, own: list[_Measured], trunk: list[_Measured], revisions: Places) -> TrendPage:
    fork = _fork(line, own, revisions)
    measured = [*_shared(line, trunk, fork, revisions), *own]
    boots: dict[str, list[float]] = defaultdict(list)
    experiments: dict[str, set[int]] = defaultdict(set)
    for base_point in measured:
        boots[base_point.commit] += base_point.boots
        experiments[base_point.commit].add(base_point.experiment)
    places = [revisions[line.tree_id, commit] for commit in boots if (line.tree_id, commit) in revisions]
    order = sorted(places, key=lambda revision: (revision.position, revision.commit))
    points = tuple(
        _point(revision, boots[revision.commit], experiments[revision.commit]) for revision in order
    )
    steps = find_steps([boots[revision.commit] for revision in order], margin=line.margin) if points else []
    views = tuple(_step(line, fork, points, step) for step in steps)
    commits = {base_point.commit for base_point in own}
    shared = sum(revision.commit not in commits for revision in order)
    return TrendPage(line, points, views, len(boots) - len(points), shared, fork)


def _fork(line: TrendLine, own: list[_Measured], revisions: Places) -> int | None:
    """Return the last position up to which all measured revisions of a branch continue the default branch.

    A branch that is rewritten gets another fork: the earliest one counts.
    """
    forks = [base_point.fork for base_point in own if base_point.fork is not None]
    places = [revisions.get((line.tree_id, base_point.commit)) for base_point in own]
    return min((*forks, *(place.position for place in places if place))) if forks else None


def _shared(line: TrendLine, trunk: list[_Measured], fork: int | None, revisions: Places) -> list[_Measured]:
    """Return the rows of the default branch's trend up to a fork."""
    if fork is None:
        return []
    places = ((base_point, revisions.get((line.tree_id, base_point.commit))) for base_point in trunk)
    return [base_point for base_point, place in places if place and place.position <= fork]


def _point(revision: RevisionView, boots: list[float], experiments: set[int]) -> Point:
    return Point(revision, median(boots), min(boots), max(boots), len(boots), tuple(sorted(experiments)))


def _step(line: TrendLine, fork: int | None, points: tuple[Point, ...], step: TrendStep) -> StepView:
    good, bad = points[step.at - 1].revision, points[step.at].revision
    ours = Q(branch=None) | Q(branch=line.branch)
    if fork is not None:
        ours |= Q(branch="", position__lte=fork)
    between = Revision.objects.filter(
        ours, tree=line.tree_id, position__gt=good.position, position__lte=bad.position
    )
    suspects = _suspects(between[:MOST_LISTED], bad)
    rises = step.after > step.before
    worse = rises == (line.better == "lower")
    return from_attributes(
        StepView,
        step,
        index=step.at,
        good=good,
        bad=bad,
        earliest=points[step.earliest].revision,
        latest=points[step.latest].revision,
        suspects=suspects,
        unlisted=bad.position - good.position - len(suspects),
        verdict="regression" if worse else "improvement",
    )


def _suspects(between: Iterable[Revision], bad: RevisionView) -> tuple[RevisionView, ...]:
    """Return the commits that may have made the step: the bad one, and those alone at their place.

    between: those that are not known to be of another branch.

    Of several at one place, at most one is an ancestor of the bad commit; the others are of other branches.
    """
    rows = list(between)
    held = Counter(row.position for row in rows)
    held[bad.position] += 1
    return tuple(_view(row) for row in rows if row.commit == bad.commit or held[row.position] == 1)


def _view(row: Revision) -> RevisionView:
    return from_attributes(RevisionView, row)


def point_data(point: Point) -> dict[str, Any]:
    """Return one measured revision; median, low and high in the metric's unit."""
    data = asdict(point)
    return {**data.pop("revision"), **data}


def step_data(step: StepView) -> dict[str, Any]:
    """Return one step; `at` is the index of the point that it begins with, the ratio is after over before."""
    same = ("verdict", "pending", "why", "ratio", "low", "high", "p_value", "unlisted")
    return {
        "at": step.index,
        "good": step.good.commit,
        "bad": step.bad.commit,
        "suspects": [suspect.commit for suspect in step.suspects],
        **{name: getattr(step, name) for name in same},
    }
