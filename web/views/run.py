# SPDX-License-Identifier: GPL-2.0-or-later
"""One run with its console, and the log of one build."""

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from lab.errors import FileGone
from lab.notes.pages import notes_on
from lab.runs.pages import BuildPage, RunPage, build_page, run_page
from lab.storage.files import KeptFile
from web.logs import TAIL_BYTES, WHOLE_BYTES, Log, printable, read_end, read_part
from web.views.profile_kinds import WORDS
from web.words import number

# The console on the run's own page; its last lines tell most.
_GLANCE_BYTES = 12 * 1024
_TEXT_LIMIT = 40_000
_OPEN = ("queued", "building", "running")


@require_safe
def show(request: HttpRequest, run_id: int) -> HttpResponse:
    """One boot: how it ended, its numbers, what the kernel complained about, where it ran."""
    page = run_page(run_id)
    log = read_end(page.console, limit=_GLANCE_BYTES)
    ctx = {
        "page": page,
        "run": page.row,
        "detail": printable(page.row.problem_detail),
        "took": page.row.seconds,
        "columns": range(1, max((len(line.values) for line in page.metrics), default=0) + 1),
        "environment": _groups(page.row.environment),
        "extras": _text(page.extras),
        "profiles": _profiles(page),
        "notes": notes_on(run=run_id),
        **_followed(log, page.row.state, reverse("run_console_part", args=[run_id])),
    }
    return render(request, "web/run.html", ctx)


@require_safe
def console(request: HttpRequest, run_id: int) -> HttpResponse:
    """The end of a run's console, or with ?all=1 the whole of it; it grows while the run is under way."""
    page = run_page(run_id)
    log = _log(request, page.console, page.row.state, reverse("run_console_part", args=[run_id]))
    return render(request, "web/console.html", {"page": page, "run": page.row, **log})


@require_safe
def console_part(request: HttpRequest, run_id: int) -> HttpResponse:
    """Return a run's console from `?offset=` on, as text."""
    page = run_page(run_id)
    return _part(request, page.console, page.row.state)


@require_safe
def console_raw(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """A run's console, byte for byte."""
    return _download(run_page(run_id).console, f"run-{run_id}-console.txt")


@require_safe
def build_log(request: HttpRequest, build_id: int) -> HttpResponse:
    """One build: how it ended, and the end of its log, which grows while it is made."""
    page = build_page(build_id)
    log = _log(request, page.log, page.row.state, reverse("build_log_part", args=[build_id]))
    return render(request, "web/build.html", _build(page) | {"request_text": _text(page.row.request), **log})


@require_safe
def build_live(request: HttpRequest, build_id: int) -> HttpResponse:
    """The part of a build's page that changes; it reloads itself until the build is over."""
    return render(request, "web/build_live.html", _build(build_page(build_id)))


@require_safe
def build_log_part(request: HttpRequest, build_id: int) -> HttpResponse:
    """Return a build's log from `?offset=` on, as text."""
    page = build_page(build_id)
    return _part(request, page.log, page.row.state)


@require_safe
def build_log_raw(request: HttpRequest, build_id: int) -> HttpResponseBase:
    """A build's log, byte for byte."""
    return _download(build_page(build_id).log, f"build-{build_id}-log.txt")


@require_safe
def build_script(request: HttpRequest, build_id: int) -> HttpResponseBase:
    """The script that builds this very kernel from a checkout of its base, without a lab."""
    page = build_page(build_id)
    name = f"artifacts/{page.row.artifact_key}/reproducer.sh"
    return _download(KeptFile(name, page.row.expired_at), f"build-{build_id}.sh")


def _build(page: BuildPage) -> dict[str, object]:
    return {
        "page": page,
        "build": page.row,
        "over": page.row.state not in _OPEN,
        "detail": printable(page.row.problem_detail),
        "since": page.row.started_at if page.row.state == "building" else None,
    }


def _followed(log: Log, state: str, address: str) -> dict[str, object]:
    """Return a log for a page, with the byte from which the page asks the address for more; None if no more comes."""
    return {"log": log, "follow": log.size if state in _OPEN else None, "address": address}


def _part(request: HttpRequest, file: KeptFile | None, state: str) -> HttpResponse:
    offset = request.GET.get("offset", "0")
    if not (offset.isdecimal() and offset.isascii() and len(offset) < 19):
        return HttpResponse(
            "offset must be a number of bytes\n", status=400, content_type="text/plain; charset=utf-8"
        )
    over = state not in _OPEN
    try:
        part = read_part(file, int(offset), over=over)
    except FileGone as exc:
        if exc.removed:
            return _removed(exc)
        raise Http404("this log is no longer on this machine") from exc
    answer = HttpResponse(part.text, content_type="text/plain; charset=utf-8")
    answer["Log-Offset"] = str(part.offset)
    answer["Log-More"] = "true" if part.more else "false"
    answer["Log-Complete"] = "true" if over and not part.more else "false"
    answer["Cache-Control"] = "no-store"
    return answer


def _log(request: HttpRequest, file: KeptFile | None, state: str, address: str) -> dict[str, object]:
    """Return the end of a log for its own page, or with ?all=1 the whole of it."""
    whole = "all" in request.GET
    log = read_end(file, limit=WHOLE_BYTES if whole else TAIL_BYTES)
    return {"whole": whole, **_followed(log, state, address)}


def _download(file: KeptFile | None, name: str) -> HttpResponseBase:
    if file is None:
        raise Http404("it was never written")
    try:
        pieces = file.pieces()
    except FileGone as exc:
        if exc.removed:
            return _removed(exc)
        raise Http404("it is not on this machine any more, or was never written") from exc
    answer = StreamingHttpResponse(pieces, content_type="text/plain")
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer


def _removed(exc: FileGone) -> HttpResponse:
    return HttpResponse(f"This file was {exc}.\n", status=410, content_type="text/plain; charset=utf-8")


def _groups(environment: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    """The environment by its parts, such as guest and host; values outside of any part come last."""
    groups = [
        (_named(key), list(_facts(part))) for key, part in environment.items() if isinstance(part, Mapping)
    ]
    loose = {key: value for key, value in environment.items() if not isinstance(value, Mapping)}
    return [*groups, ("other" if groups else "", list(_facts(loose)))] if loose else groups


def _facts(part: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in part.items():
        if key == "mitigations" and isinstance(value, Mapping):
            yield key, _mitigations(value)
        elif isinstance(value, Mapping):
            yield from ((f"{_named(key)} {name}", text) for name, text in _facts(value))
        elif isinstance(value, list):
            yield _named(key), ", ".join(str(item) for item in value)
        else:
            yield _named(key), number(value) if isinstance(value, float) else str(value)


def _mitigations(mitigations: Mapping[str, Any]) -> str:
    """Return the mitigations in force, each with its state; then the names of the flaws that this CPU lacks."""
    lacking = [_named(name) for name, state in mitigations.items() if state == "Not affected"]
    in_force = [f"{_named(name)}: {state}" for name, state in mitigations.items() if state != "Not affected"]
    return "; ".join([*in_force, f"not affected: {', '.join(sorted(lacking))}"] if lacking else in_force)


def _named(key: str) -> str:
    return key.removeprefix("host_").replace("_", " ")


def _profiles(page: RunPage) -> list[tuple[str, str]]:
    """Return the label and the address of each kind of profile that a run keeps."""
    at = reverse("profile", args=(page.row.experiment_id, page.row.case_id))
    return [
        (WORDS[kind].label, f"{at}?{urlencode({'kind': kind, 'variant': page.row.variant.name})}")
        for kind in page.profiles
        if kind in WORDS
    ]


def _text(mapping: Mapping[str, Any]) -> str:
    if not mapping:
        return ""
    text = json.dumps(mapping, indent=1, ensure_ascii=False, default=str)
    return (
        text
        if len(text) <= _TEXT_LIMIT
        else f"{text[:_TEXT_LIMIT]}\n… and {len(text) - _TEXT_LIMIT:,} characters more"
    )
