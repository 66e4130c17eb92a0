# SPDX-License-Identifier: GPL-2.0-or-later
"""The first page: the lab at a glance."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from lab.operations.front_page import front_page
from lab.statistics.verdict_words import counted_verdicts

# Targets with faults that are named; the lab's page has all.
_ILL = 3


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show running work, regressions, targets with faults and new experiments."""
    page = front_page()
    ill = [target for target in page.targets if target.complaints]
    ctx = {
        "running": page.running,
        "waiting": page.waiting,
        "rows": page.regressions,
        "more_regressions": page.more_regressions,
        "ill": ill[:_ILL],
        "more_ill": len(ill) - _ILL,
        "well": [target for target in page.targets if not target.complaints],
        "alerts": page.alerts,
        "newest": [(row, counted_verdicts(counts.verdicts)) for row, counts in page.newest],
    }
    return render(request, "web/front.html", ctx)
