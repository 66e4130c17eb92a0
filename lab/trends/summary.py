# SPDX-License-Identifier: GPL-2.0-or-later
"""The summaries of trends: their latest points and their steps, so that no list reads all points.

Upkeep computes stale summaries, and so does the list itself, for a lab without upkeep. Nothing is locked meanwhile: a summary is
written only if no point has changed since its computation began.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from pydantic import TypeAdapter

from lab.from_attributes import attributes, from_attributes
from lab.models import Trend
from lab.models.storable import storable
from lab.trends.page import LEAST_POINTS, StepView, TrendLine, TrendPage, trend_pages

# A course is drawn 120 pixels wide.
COURSE = 120
_AT_ONCE = 20
# The columns of a trend's identity, by its fields.
_LINE = {field.name: field.name for field in fields(TrendLine)} | {"tree": "tree__name"}
_STEPS = TypeAdapter(tuple[StepView, ...])


@dataclass(frozen=True, slots=True)
class TrendSummary:
    """A trend as lists show it. points: how many of its own; revision, experiment: of the newest point.

    steps: without those between points that it shares with the trend of the default branch, which has them, too.
    """

    line: TrendLine
    points: int
    revision: str
    experiment: int
    steps: tuple[StepView, ...]


def refresh_trends() -> int:
    """Compute the summaries that are stale; returns how many. Writes nothing where points changed meanwhile."""
    stale = list(Trend.objects.filter(stale=True).order_by("key").values_list("key", "changes"))
    for place in range(0, len(stale), _AT_ONCE):
        part = stale[place : place + _AT_ONCE]
        pages = trend_pages([key for key, _ in part])
        for key, changes in part:
            as_it_was = Trend.objects.filter(key=key, changes=changes)
            if key in pages:
                as_it_was.update(stale=False, **_columns(pages[key]))
            else:
                as_it_was.delete()
    return len(stale)


def trend_summaries() -> tuple[TrendSummary, ...]:
    """Return all trends with at least two points of their own, by tree, workload and preset; stale ones are computed first."""
    refresh_trends()
    rows = Trend.objects.filter(points__gte=LEAST_POINTS).order_by("tree__name", "workload", "preset", "pk")
    own = ("points", "revision", "experiment", "steps")
    return tuple(
        TrendSummary(
            TrendLine(**dict(zip(_LINE, line, strict=True))),
            points,
            revision,
            experiment,
            _STEPS.validate_python(steps),
        )
        for points, revision, experiment, steps, *line in rows.values_list(*own, *_LINE.values())
    )


def courses(keys: Sequence[str]) -> Mapping[str, tuple[float, ...]]:
    """Return by key the medians of the latest points, the newest last."""
    rows = Trend.objects.filter(key__in=keys).values_list("key", "course")
    return {key: tuple(course) for key, course in rows}


def trend_lines(keys: Sequence[str]) -> tuple[TrendLine, ...]:
    """Return the identities of these trends, in their order, without points."""
    rows = Trend.objects.filter(key__in=keys).select_related("tree").defer("course", "steps")
    lines = {row.key: trend_line(row) for row in rows}
    return tuple(lines[key] for key in keys if key in lines)


def trend_line(row: Trend) -> TrendLine:
    """Return the identity of a trend."""
    return from_attributes(TrendLine, row, tree=row.tree.name)


def _columns(page: TrendPage) -> dict[str, Any]:
    line, last = page.line, page.points[-1] if page.points else None
    return attributes(line, ("preset", "unit", "better", "margin", "primary")) | {
        "points": page.own,
        "fork": page.fork,
        "unplaced": page.unplaced,
        "revision": last.revision.commit if last else "",
        "experiment": last.experiments[-1] if last else 0,
        "course": [point.median for point in page.points[-COURSE:]],
        "steps": [storable(asdict(step)) for step in page.steps if step.index >= page.shared],
    }
