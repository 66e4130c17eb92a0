# SPDX-License-Identifier: GPL-2.0-or-later
"""The first page, the lab at a glance, and one's own work on one page."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from lab.operations.front_page import front_page, mark_seen, own_work
from lab.targets.fleet import read_fleet
from lab.targets.health_overview import target_healths
from web.access import person

# Targets with faults that are named; the lab's page has all.
_ILL = 3


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show running work, regressions, targets with faults and new experiments."""
    targets = target_healths(read_fleet())
    # A disabled target needs nobody, as one that is no longer there, unless boots wait for it.
    ill = [target for target in targets if target.complaints and (target.row.enabled or target.waiting)]
    ctx = {
        **front_page(),
        "ill": ill[:_ILL],
        "more_ill": len(ill) - _ILL,
        "well": [target for target in targets if not target.complaints],
    }
    return render(request, "web/front.html", ctx)


@never_cache
@login_required
@require_safe
def mine(request: HttpRequest) -> HttpResponse:
    """Show the user's experiments, and everything else that the user owns."""
    return render(request, "web/mine.html", {"work": own_work(person(request))})


@login_required
@require_POST
def seen(request: HttpRequest) -> HttpResponse:
    """Mark the finished experiments as seen."""
    mark_seen(person(request))
    messages.success(request, "Marked as seen. Experiments that finish from now on are listed here.")
    return redirect("mine")
