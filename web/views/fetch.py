# SPDX-License-Identifier: GPL-2.0-or-later
"""The page of a preview or submission that a worker carries out: its progress, then its result."""

import re
from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.text import capfirst
from django.views.decorators.http import require_POST, require_safe
from pydantic import TypeAdapter

from lab.errors import Outdated, SpecError
from lab.experiments.limits import FETCH_BYTES, FETCH_DEADLINE_S, FETCH_SILENT_S, PREVIEW_UNWATCHED_S
from lab.models import Fetch
from lab.submission.choices import submission_choices
from lab.submission.fetches.problem import error_of
from lab.submission.fetches.requests import OPEN, cancel_fetch, fetches_before, look_at_fetch
from lab.submission.preview import Preview
from lab.submission.received_series import Received
from web.access import needs, person
from web.faults import fault_lines, form_faults
from web.formpage import FormPage, fresh
from web.forms import TypedForm, describe
from web.sources import with_fetched
from web.views.submission import show_form
from web.words import duration

_TYPED = TypeAdapter(TypedForm)
_PREVIEW = TypeAdapter(Preview)
_RECEIVED = TypeAdapter(tuple[Received, ...])


@needs("submit")
@require_safe
def show(request: HttpRequest, fetch_id: int) -> HttpResponse:
    """Return its progress while it is open; then the form with the preview or the faults, or the experiment."""
    row = look_at_fetch(fetch_id=fetch_id, by=person(request))
    if row.state in OPEN:
        return render(request, "web/fetch.html", _live(row))
    if row.experiment_id is not None:
        return redirect("experiment", row.experiment_id)
    if not row.form and row.origin_id is not None:
        # Asked for by a button of the experiment's page.
        messages.error(request, f"It was not submitted again: {_why_not(row)}")
        return redirect("experiment", row.origin_id)
    return show_form(request, _result(row))


@needs("submit")
@require_safe
def live(request: HttpRequest, fetch_id: int) -> HttpResponse:
    """The part of that page that changes; once the fetch is over, the browser reloads the whole page."""
    row = look_at_fetch(fetch_id=fetch_id, by=person(request))
    answer = render(request, "web/fetch_live.html", _live(row))
    if row.state not in OPEN:
        answer.headers["HX-Refresh"] = "true"
    return answer


@needs("submit")
@require_POST
def cancel(request: HttpRequest, fetch_id: int) -> HttpResponse:
    """Cancel it; the form comes back as it was."""
    try:
        cancel_fetch(fetch_id=fetch_id, by=person(request))
    except Outdated as exc:
        messages.info(request, f"{capfirst(str(exc))}.")
    return redirect("fetch", fetch_id)


def _percent(line: str) -> int | None:
    """Return the share that a line such as "importing linux.tar.xz: 30 %" ends with; None where it has none."""
    match = re.search(r"\b(\d{1,2}|100) %$", line)
    return int(match[1]) if match else None


def _live(row: Fetch) -> dict[str, Any]:
    return {
        "fetch": row,
        "open": row.state in OPEN,
        "before": fetches_before(row),
        "importing": row.progress.startswith("importing "),
        "percent": _percent(row.progress),
        "mib": row.received_bytes / (1 << 20) if row.received_bytes else None,
        "limits": {
            "minutes": FETCH_DEADLINE_S // 60,
            "silent": duration(FETCH_SILENT_S),
            "unwatched": duration(PREVIEW_UNWATCHED_S),
            "gib": FETCH_BYTES >> 30,
        },
    }


def _why_not(row: Fetch) -> str:
    return str(error_of(row.problem)) if row.problem else "it was cancelled."


def _result(row: Fetch) -> FormPage:
    """Return the form as it was sent, with the fetched series, and the preview or the reason why there is none."""
    previewing = row.kind == Fetch.Kind.PREVIEW
    typed: TypedForm | None
    if "typed" not in row.form:
        toml = str(row.form.get("toml", ""))
        empty = replace(fresh(submission_choices()), origin=str(row.origin_id or ""))
        page = FormPage(empty, toml=toml, previewing=previewing)
        typed = None
    else:
        arrived = with_fetched(
            _TYPED.validate_python(row.form["typed"]), _RECEIVED.validate_python(row.received)
        )
        page = FormPage(arrived.typed, notes=arrived.notes, previewing=previewing)
        typed = arrived.typed
    if row.preview is not None:
        return replace(page, preview=_PREVIEW.validate_python(row.preview))
    if not row.problem:
        return replace(page, notes=[*page.notes, f"The {_noun(row)} was cancelled. Nothing was queued."])
    return replace(page, **_faults(row, typed))


def _faults(row: Fetch, typed: TypedForm | None) -> dict[str, Any]:
    error = error_of(row.problem)
    faults = {"toml": "\n".join(fault_lines(error))} if typed is None else form_faults(error, describe(typed))
    return {"errors": faults, "detail": "" if isinstance(error, SpecError) and typed else error.detail}


def _noun(row: Fetch) -> str:
    return "preview" if row.kind == Fetch.Kind.PREVIEW else "submission"
