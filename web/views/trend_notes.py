# SPDX-License-Identifier: GPL-2.0-or-later
"""Notes on a trend: written at one of its revisions, shown on its chart."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from lab.errors import FieldRefused
from lab.notes.changes import write_note
from lab.trends.page import measured_revision, trend_page
from web.access import needs, person
from web.views.trend import TypedNote, trend_response


@needs("submit")
@require_POST
def on_trend(request: HttpRequest, key: str) -> HttpResponse:
    """A new note on a revision of a trend; what is refused comes back as it was typed."""
    page = trend_page(key)
    revision, text = request.POST.get("revision", ""), request.POST.get("text", "")
    everywhere = request.POST.get("everywhere") == "1"
    try:
        write_note(
            author=person(request),
            text=text,
            revision=measured_revision(page, revision),
            trend="" if everywhere else key,
        )
    except FieldRefused as exc:
        return trend_response(request, page, TypedNote(revision, text, everywhere, {exc.field: str(exc)}))
    return redirect(f"{reverse('trend', args=[key])}#notes")
