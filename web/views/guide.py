# SPDX-License-Identifier: GPL-2.0-or-later
"""Help: pipelines to copy, the API, keys, and where everything else is."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from lab.operations.newest_base import newest_base
from web.access import needs
from web.apipage import api_page
from web.pipelines import FILES, get_files, pipelines, read_pipeline


@needs("read")
@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show the ways in."""
    server = _server(request)
    ctx = {"server": server, "pipelines": pipelines(server, newest_base()), "files": get_files(server)}
    return render(request, "web/help.html", ctx)


@needs("read")
@require_safe
def api(request: HttpRequest) -> HttpResponse:
    """Show every call of the REST API, from its OpenAPI schema."""
    return render(request, "web/api_help.html", {"server": _server(request), "page": api_page()})


@needs("read")
@require_safe
def pipeline_file(request: HttpRequest, name: str) -> HttpResponse:
    """Return one file of a pipeline as plain text."""
    if name not in FILES:
        raise Http404(f"there is no pipeline file of this name; there are {', '.join(FILES)}")
    text = read_pipeline(name, _server(request), newest_base())
    return HttpResponse(text, content_type="text/plain; charset=utf-8")


def _server(request: HttpRequest) -> str:
    return request.build_absolute_uri("/").rstrip("/")
