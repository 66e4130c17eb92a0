# SPDX-License-Identifier: GPL-2.0-or-later
"""Writing, editing and deleting notes; a refused note comes back on a page of its own, as typed."""

import re

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from lab.errors import FieldRefused
from lab.experiments.page import get_experiment
from lab.models import Experiment, Note, Run
from lab.notes.changes import delete_note, edit_note, write_note
from lab.notes.pages import author_name, get_note
from lab.people.permissions import may_change
from lab.runs.pages import get_run
from lab.trends.page import measured_revision, trend_page
from web.access import needs, person
from web.views.trend import TypedNote, trend_response


@needs("submit")
@require_POST
def on_experiment(request: HttpRequest, experiment_id: int) -> HttpResponse:
    """A new note on an experiment."""
    return _written(
        request, reverse("experiment", args=[experiment_id]), experiment=get_experiment(experiment_id)
    )


@needs("submit")
@require_POST
def on_run(request: HttpRequest, run_id: int) -> HttpResponse:
    """A new note on a run."""
    return _written(request, reverse("run", args=[run_id]), run=get_run(run_id))


def _written(
    request: HttpRequest, back: str, *, experiment: Experiment | None = None, run: Run | None = None
) -> HttpResponse:
    text = request.POST.get("text", "")
    try:
        write_note(author=person(request), text=text, experiment=experiment, run=run)
    except FieldRefused as exc:
        return _form(request, back, text, error=str(exc))
    return redirect(f"{back}#notes")


@needs("submit")
@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, note_id: int) -> HttpResponse:
    """One's own note, to edit or to delete."""
    note = get_note(note_id)
    back = _back(request, note)
    if request.method != "POST":
        if not may_change(person(request), note.author):
            return render(request, "403.html", {"said": f"This note is {author_name(note)}'s."}, status=403)
        return _form(request, back, note.text, note=note)
    text = request.POST.get("text", "")
    try:
        edit_note(note_id=note_id, by=person(request), text=text)
    except FieldRefused as exc:
        return _form(request, back, text, note=note, error=str(exc))
    return redirect(f"{back}#notes")


@needs("submit")
@require_POST
def delete(request: HttpRequest, note_id: int) -> HttpResponse:
    """Remove one's own note."""
    note = get_note(note_id)
    delete_note(note_id=note_id, by=person(request))
    messages.success(request, "The note is deleted.")
    return redirect(_back(request, note))


def _form(
    request: HttpRequest, back: str, text: str, *, note: Note | None = None, error: str = ""
) -> HttpResponse:
    """Return the form of a note, where it came from, and what was typed; 422 with an error."""
    action = request.get_full_path()
    query = action.removeprefix(request.path)
    form = {"action": action, "query": query, "back": back, "text": text, "note": note, "error": error}
    return render(request, "web/note.html", {"form": form}, status=422 if error else 200)


def _back(request: HttpRequest, note: Note) -> str:
    """Return the page of a note; of one on all trends of a tree, the trend that the address names."""
    if note.experiment_id:
        return reverse("experiment", args=[note.experiment_id])
    if note.run_id:
        return reverse("run", args=[note.run_id])
    key = note.trend or request.GET.get("trend", "")
    return reverse("trend", args=[key]) if re.fullmatch(r"[0-9a-f]{12}", key) else reverse("trends")


@needs("submit")
@require_POST
def on_trend(request: HttpRequest, key: str) -> HttpResponse:
    """A new note on a revision of a trend; a refused note comes back as it was typed."""
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
