# SPDX-License-Identifier: GPL-2.0-or-later
"""Keeping the filters of the list of experiments under a name."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from lab.errors import FieldRefused, NotAllowed
from lab.people.saved_views import delete_view, save_view
from web.access import person
from web.views.missing import found


@login_required
@require_POST
def save(request: HttpRequest) -> HttpResponse:
    """Keep a list's filters; a name that cannot be comes back as typed."""
    typed = {key: request.POST.get(key, "") for key in ("name", "query", "shared")}
    try:
        view = save_view(
            user=person(request), name=typed["name"], query=typed["query"], shared=bool(typed["shared"])
        )
    except FieldRefused as exc:
        ctx = {"typed": typed, "errors": {exc.field: str(exc)}}
        return render(request, "web/view.html", ctx, status=422)
    except NotAllowed as exc:
        return render(request, "403.html", {"said": str(exc)}, status=403)
    return redirect(reverse("experiments") + view.query)


@login_required
@require_POST
def delete(request: HttpRequest, view_id: int) -> HttpResponse:
    """Remove a view."""
    try:
        found(delete_view, view_id=view_id, by=person(request))
    except NotAllowed as exc:
        return render(request, "403.html", {"said": str(exc)}, status=403)
    messages.success(request, "The view is deleted.")
    return redirect("experiments")
