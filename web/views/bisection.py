# SPDX-License-Identifier: GPL-2.0-or-later
"""Searches for the commit that brought a step: all of them, and one with its steps."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from lab.bisections.pages import BisectionStepView, bisection_list, bisection_page
from web.views.missing import found
from web.words import change

_ANSWERS = {
    "commit": "This commit brought it",
    "range": "One of these commits brought it; between them nothing could be told",
    "no-step": "There is no such step between the two",
    "untold": "It cannot be told",
}


@dataclass(frozen=True, slots=True)
class StepRow:
    """One step, its change against the good revision in words."""

    step: BisectionStepView
    change: str
    interval: str


@require_safe
def listing(request: HttpRequest) -> HttpResponse:
    """All bisections, the newest first."""
    return render(request, "web/bisections.html", {"rows": bisection_list()})


@require_safe
def show(request: HttpRequest, bisection_id: int) -> HttpResponse:
    """One bisection: what it found, the commits that are left, and each comparison."""
    page = found(bisection_page, bisection_id)
    named = page.answer in {"commit", "range"}
    ctx = {
        "page": page,
        "answer": _ANSWERS.get(page.answer, ""),
        "found": _row(page.shift) if page.shift and named else None,
        "before": _row(page.before) if page.before else None,
        "steps": [_row(step) for step in page.steps],
    }
    return render(request, "web/bisection.html", ctx)


def _row(step: BisectionStepView) -> StepRow:
    interval = f"{change(step.low)} to {change(step.high)}" if step.low is not None else ""
    return StepRow(step, change(step.ratio) if step.ratio is not None else "", interval)
