# SPDX-License-Identifier: GPL-2.0-or-later
"""One's own work on one page."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from lab.operations.own_work import mark_seen, own_work
from web.access import person


@never_cache
@login_required
@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show what somebody's experiments do, and what they own."""
    return render(request, "web/mine.html", {"work": own_work(person(request))})


@login_required
@require_POST
def seen(request: HttpRequest) -> HttpResponse:
    """Mark what is finished as seen."""
    mark_seen(person(request))
    messages.success(request, "Marked as seen. Experiments that finish from now on are listed here.")
    return redirect("mine")
