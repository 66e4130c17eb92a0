# SPDX-License-Identifier: GPL-2.0-or-later
"""Searches for the commit that caused a step: all of them, and one with its steps."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from lab.bisections.pages import bisection_list, bisection_page
from web.listing import page_number

_ANSWERS = {
    "commit": "This commit caused it",
    "range": "One of these commits caused it; comparisons between them were inconclusive",
    "no-step": "There is no such step between the two",
    "untold": "Inconclusive",
}


@require_safe
def listing(request: HttpRequest) -> HttpResponse:
    """All bisections, the newest first."""
    rows, page = bisection_list(page_number(request))
    return render(request, "web/bisections.html", {"rows": rows, "page": page})


@require_safe
def show(request: HttpRequest, bisection_id: int) -> HttpResponse:
    """One bisection: what it found, the commits that are left, and each comparison."""
    page = bisection_page(bisection_id)
    named = page.row.answer in {"commit", "range"}
    ctx = {
        "page": page,
        "answer": _ANSWERS.get(page.row.answer, ""),
        "found": page.shift if named else None,
    }
    return render(request, "web/bisection.html", ctx)
