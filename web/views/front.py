# SPDX-License-Identifier: GPL-2.0-or-later
"""The first page: the lab at a glance."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from lab.operations.front_page import front_page
from lab.targets.health_overview import target_healths

# Targets with faults that are named; the lab's page has all.
_ILL = 3


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show running work, regressions, targets with faults and new experiments."""
    targets = target_healths(checks=False)
    ill = [target for target in targets if target.complaints]
    ctx = {
        **front_page(),
        "ill": ill[:_ILL],
        "more_ill": len(ill) - _ILL,
        "well": [target for target in targets if not target.complaints],
    }
    return render(request, "web/front.html", ctx)
