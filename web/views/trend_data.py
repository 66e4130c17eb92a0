# SPDX-License-Identifier: GPL-2.0-or-later
"""A trend's numbers for the chart in the page, and as CSV and JSON for further use."""

import csv
import io
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from lab.models import Note
from lab.notes.pages import author_name, trend_notes
from lab.one_line import as_cell
from lab.trends.page import TrendPage, point_data, step_data, trend_page
from web.api.logs import as_file
from web.words import change

_SHORT = 10


def chart(page: TrendPage, notes: Sequence[Note] = ()) -> dict[str, Any]:
    """Return the columns that web/front/trend.js draws; commits are shortened, since the page needs no more of them."""
    points = page.points
    places = {point.revision.commit: at for at, point in enumerate(points)}
    ends = [0, *(step.index for step in page.steps), len(points)]
    return {
        "unit": page.line.unit,
        "commits": [point.revision.commit[:_SHORT] for point in points],
        "subjects": [point.revision.subject for point in points],
        "authors": [point.revision.author for point in points],
        "median": [point.median for point in points],
        "low": [point.low for point in points],
        "high": [point.high for point in points],
        "boots": [point.boots for point in points],
        "steps": [
            {
                "at": step.index,
                "verdict": step.verdict,
                "pending": step.pending,
                "title": f"{'pending ' if step.pending else ''}{step.verdict} of {change(step.ratio)}",
            }
            for step in page.steps
        ],
        "notes": [
            {"at": places[note.revision.commit], "author": author_name(note), "text": note.text}
            for note in notes
            if note.revision and note.revision.commit in places
        ],
        "levels": [median(point.median for point in points[start:end]) for start, end in pairwise(ends)],
    }


@require_safe
def as_csv(request: HttpRequest, key: str) -> HttpResponse:
    """One revision a line, oldest first; a step stands with the revision it begins with."""
    page = trend_page(key)
    steps = {step.index: step for step in page.steps}
    head = f"commit,position,subject,author,median_{page.line.unit},low,high,boots,step,step_ratio"
    rows: list[Sequence[object]] = [head.split(",")]
    for index, point in enumerate(page.points):
        step, revision = steps.get(index), point.revision
        named = (revision.commit, revision.position, revision.subject, revision.author)
        moved = (step.verdict, step.ratio) if step else ("", "")
        rows.append((*named, point.median, point.low, point.high, point.boots, *moved))
    return csv_file(rows, f"trend-{key}.csv")


def csv_file(rows: Iterable[Sequence[object]], name: str) -> HttpResponse:
    """Return rows as a file of CSV, in which no spreadsheet takes a text for a formula."""
    text = io.StringIO()
    plain = ([as_cell(item) if isinstance(item, str) else item for item in row] for row in rows)
    csv.writer(text).writerows(plain)
    return as_file(text.getvalue(), "text/csv; charset=utf-8", name)


@require_safe
def as_json(request: HttpRequest, key: str) -> JsonResponse:
    """The trend, its points, and its steps by the index of the point they begin with."""
    page = trend_page(key)
    line = page.line
    names = ("tree", "branch", "workload", "preset", "params", "target", "clock", "metric", "unit", "better")
    return JsonResponse(
        {
            "key": line.key,
            **{name: getattr(line, name) for name in names},
            "margin": line.margin,
            "shared": page.shared,
            "notes": [
                {
                    "commit": note.revision and note.revision.commit,
                    "author": author_name(note),
                    "text": note.text,
                    "created_at": note.created_at,
                }
                for note in trend_notes(line)
            ],
            "points": [point_data(point) for point in page.points],
            "steps": [step_data(step) for step in page.steps],
        }
    )
