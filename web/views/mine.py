# SPDX-License-Identifier: GPL-2.0-or-later
"""One's own work on one page."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from lab.operations.own_work import mark_seen, own_work
from lab.statistics.verdict_words import counted_verdicts
from web.access import person


@never_cache
@login_required
@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show what somebody's experiments do, and what they own."""
    work = own_work(person(request))
    ctx = {
        "work": work,
        "finished": [(row, counted_verdicts(counts.verdicts)) for row, counts in work.finished],
    }
    return render(request, "web/mine.html", ctx)


@login_required
@require_POST
def seen(request: HttpRequest) -> HttpResponse:
    """Mark what is finished as seen."""
    mark_seen(person(request))
    messages.success(request, "Marked as seen. What finishes from now on is listed here.")
    return redirect("mine")
