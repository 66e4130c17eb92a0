# SPDX-License-Identifier: GPL-2.0-or-later
"""Trends: the course of a metric over the revisions of a tree, and the steps in it."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from lab.bisections.pages import bisections_of
from lab.notes.pages import trend_notes
from lab.statistics.verdict_words import DIRECTIONS
from lab.trends.other_branches import default_branch, other_branches
from lab.trends.page import StepView, TrendLine, TrendPage, trend_page
from lab.trends.repeatability import repeatability
from lab.trends.summary import courses, trend_summaries
from lab.trends.told_apart import told_apart
from web.listing import kept_filters, without_empty_filters
from web.trendchart import Dot, Jump, spark, trend_plot
from web.views.steps import DECIDED, REFUSED, SORTS, STATES, read_asked, step_rows
from web.views.trend_data import chart
from web.words import count, quantity

_SHORT = 10
_MOST_DRAWN = 400
# Rows of the table; the chart and the files have all.
_MOST_LISTED = 60
# Notes, unless all are asked for; the chart has a mark for each, with its text.
_MOST_NOTES = 30
# Trends on a page of their list.
_LISTED = 25


@require_safe
@without_empty_filters
def listing(request: HttpRequest) -> HttpResponse:
    """Show the steps by cause, then all trends of primary metrics with their course and last step."""
    asked, trends = read_asked(request.GET), trend_summaries()
    fitting = [trend for trend in trends if trend.line.primary and asked.fits(trend.line)]
    if asked.sort == "new":
        fitting.sort(key=lambda trend: -trend.experiment)
    elif asked.sort == "name":
        fitting.sort(key=lambda trend: trend.line.title)
    else:
        fitting.sort(key=lambda trend: not trend.steps)
    page = Paginator(fitting, _LISTED).get_page(request.GET.get("page"))
    apart = told_apart(trend.line for trend in trends)
    drawn = courses([trend.line.key for trend in page])
    # A trend that was recomputed between the two queries is left out.
    rows = [(trend, drawn[trend.line.key]) for trend in page if drawn.get(trend.line.key)]
    ctx = {
        "steps": step_rows(trends, asked, request.GET.get("steps")),
        "rows": [(trend, course[-1], spark(course), apart[trend.line.key]) for trend, course in rows],
        "page": page,
        "any": bool(trends),
        "asked": asked,
        "states": STATES,
        "sorts": SORTS.items(),
        "trees": sorted({trend.line.tree for trend in trends}),
        "targets": sorted({trend.line.target for trend in trends}),
        "kept": kept_filters(request),
        "kept_by_steps": kept_filters(request, without="steps"),
        "decided": request.session.pop(DECIDED, None),
        "typed": request.session.pop(REFUSED, None),
        "repeats": repeatability(),
    }
    return render(request, "web/trends.html", ctx)


@dataclass(frozen=True, slots=True)
class TypedNote:
    """The form for a note, as typed: the revision, the text, whether it is for all trends of the tree; faults by field."""

    revision: str = ""
    text: str = ""
    everywhere: bool = False
    faults: Mapping[str, str] = field(default_factory=dict)


@require_safe
def show(request: HttpRequest, key: str) -> HttpResponse:
    """One trend: chart, steps, notes, revisions with the newest first."""
    return trend_response(request, trend_page(key), TypedNote())


def trend_response(request: HttpRequest, page: TrendPage, typed: TypedNote) -> HttpResponse:
    """The page of a trend; 422 where a note was refused."""
    sections = {step.index: _section(page.line, step) for step in page.steps}
    notes = list(trend_notes(page.line))
    listed = notes[::-1][: None if request.GET.get("notes") == "all" else _MOST_NOTES]
    drawn = chart(page, notes)
    points = [
        (point, sections[index]["step"] if index in sections else None)
        for index, point in enumerate(page.points)
    ]
    ctx = {
        "page": page,
        "line": page.line,
        "default_branch": default_branch(page.line),
        "others": other_branches(page.line),
        "better": DIRECTIONS.get(page.line.better, ""),
        # Without scripts a drawing is shown, if it is small enough to read; the chart needs the numbers.
        "plot": _plot(page, drawn) if 0 < len(page.points) <= _MOST_DRAWN else None,
        "chart": drawn,
        "sections": list(sections.values())[::-1],
        "points": points[::-1][:_MOST_LISTED],
        "unlisted": max(0, len(points) - _MOST_LISTED),
        "amount": len(points),
        "notes": listed,
        "more_notes": len(notes) - len(listed),
        "typed": typed,
    }
    return render(request, "web/trend.html", ctx, status=422 if typed.faults else 200)


def _section(line: TrendLine, step: StepView) -> dict[str, Any]:
    """Return one step. elsewhere: the revisions between which it may lie, "" if there is one place or it is pending."""
    near = step.earliest == step.latest or step.pending
    return {
        "step": step,
        "sure": "" if step.p_value is None else f"p = {step.p_value:.1g} (adjusted for all places searched)",
        "elsewhere": "" if near else f"{step.earliest.commit[:_SHORT]} to {step.latest.commit[:_SHORT]}",
        "bisections": bisections_of(line, step),
    }


def _plot(page: TrendPage, drawn: Mapping[str, Any]) -> dict[str, Any]:
    """Return the drawing for browsers without scripts, of the numbers that the chart has. drawn: see trend_data.chart."""
    notes: dict[int, list[str]] = defaultdict(list)
    for note in drawn["notes"]:
        notes[note["at"]].append(f"{note['author']}: {note['text']}")
    dots = [
        Dot(
            point.median,
            point.low,
            point.high,
            drawn["commits"][at],
            f"{drawn['commits'][at]} {point.revision.subject}: {quantity(point.median, page.line.unit)}, "
            f"{count(point.boots, 'boot')}",
            "\n".join(notes[at]),
        )
        for at, point in enumerate(page.points)
    ]
    return trend_plot(dots, [Jump(**step) for step in drawn["steps"]], drawn["levels"])
