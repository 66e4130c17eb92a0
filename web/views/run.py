# SPDX-License-Identifier: GPL-2.0-or-later
"""One run with its console, and the log of one build."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe

from lab.queries.executions import MetricValues, build_page, run_page
from web.logs import TAIL_BYTES, WHOLE_BYTES, printable, read_end
from web.views.missing import found
from web.words import NONE, duration, number

# The console on the run's own page; its last lines tell most.
_GLANCE_BYTES = 12 * 1024
_TEXT_LIMIT = 40_000


@dataclass(frozen=True, slots=True)
class MetricLine:
    """One metric of one run: its value in each iteration, and the median of those that count."""

    metric: str
    values: tuple[tuple[str, bool], ...]
    median: str


@require_safe
def show(request: HttpRequest, run_id: int) -> HttpResponse:
    """One boot: how it ended, its numbers, what the kernel complained about, where it ran."""
    page = found(run_page, run_id)
    lines = [_metric_line(metric) for metric in page.metrics]
    ctx = {
        "page": page,
        "detail": printable(page.problem_detail),
        "took": _took(page.started_at, page.finished_at),
        "lines": lines,
        "columns": range(1, max((len(line.values) for line in lines), default=0) + 1),
        "environment": _groups(page.environment),
        "extras": _text(page.extras),
        "log": read_end(page.console, limit=_GLANCE_BYTES),
    }
    return render(request, "web/run.html", ctx)


@require_safe
def console(request: HttpRequest, run_id: int) -> HttpResponse:
    """The end of a run's console, or with ?all=1 the whole of it."""
    page = found(run_page, run_id)
    ctx = {"page": page, "whole": "all" in request.GET, "log": _log(request, page.console)}
    return render(request, "web/console.html", ctx)


@require_safe
def console_raw(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """A run's console, byte for byte."""
    return _download(found(run_page, run_id).console, f"run-{run_id}-console.txt")


@require_safe
def build_log(request: HttpRequest, build_id: int) -> HttpResponse:
    """One build: how it ended, and the end of its log."""
    page = found(build_page, build_id)
    ctx = {
        "page": page,
        "detail": printable(page.problem_detail),
        "cpu": duration(page.cpu_seconds),
        "wall": duration(page.wall_seconds),
        "request_text": _text(page.request),
        "whole": "all" in request.GET,
        "log": _log(request, page.log),
    }
    return render(request, "web/build.html", ctx)


@require_safe
def build_log_raw(request: HttpRequest, build_id: int) -> HttpResponseBase:
    """A build's log, byte for byte."""
    return _download(found(build_page, build_id).log, f"build-{build_id}-log.txt")


def _log(request: HttpRequest, path: Path | None) -> object:
    return read_end(path, limit=WHOLE_BYTES if "all" in request.GET else TAIL_BYTES)


def _download(path: Path | None, name: str) -> HttpResponseBase:
    try:
        if path is None:
            raise FileNotFoundError
        return FileResponse(path.open("rb"), as_attachment=True, filename=name, content_type="text/plain")
    except OSError as exc:
        raise Http404("this log is not on this machine any more, or was never written") from exc


def _took(started: Any, finished: Any) -> str:
    return duration((finished - started).total_seconds()) if started and finished else NONE


def _metric_line(metric: MetricValues) -> MetricLine:
    counted = metric.values[metric.warmups :]
    return MetricLine(
        metric=metric.metric,
        values=tuple((number(value), place < metric.warmups) for place, value in enumerate(metric.values)),
        median=number(median(counted)) if counted else NONE,
    )


def _groups(environment: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    """The environment by its parts, such as guest and host; what belongs to none comes last."""
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


def _mitigations(given: Mapping[str, Any]) -> str:
    """Those that are in force, each with what it does; then the names of the flaws this CPU lacks."""
    lacking = [_named(name) for name, state in given.items() if state == "Not affected"]
    told = [f"{_named(name)}: {state}" for name, state in given.items() if state != "Not affected"]
    return "; ".join([*told, f"not affected: {', '.join(lacking)}"] if lacking else told)


def _named(key: str) -> str:
    return key.removeprefix("host_").replace("_", " ")


def _text(given: Mapping[str, Any]) -> str:
    if not given:
        return ""
    text = json.dumps(given, indent=1, ensure_ascii=False, default=str)
    return (
        text
        if len(text) <= _TEXT_LIMIT
        else f"{text[:_TEXT_LIMIT]}\n… and {len(text) - _TEXT_LIMIT:,} characters more"
    )
