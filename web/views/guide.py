# SPDX-License-Identifier: GPL-2.0-or-later
"""Help: pipelines to copy, the API, keys, the limits of what people send, and where everything else is."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.defaultfilters import filesizeformat
from django.views.decorators.http import require_safe

from lab.operations.limit_table import Limit
from lab.submission.choices import newest_base
from web.access import needs
from web.apipage import api_page
from web.limits import all_limits
from web.pipelines import pipelines, script
from web.views.reply import own_address


@needs("read")
@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show the ways in."""
    server = own_address(request)
    ctx = {"server": server, "pipelines": pipelines(server, newest_base())}
    return render(request, "web/help.html", ctx)


@needs("read")
@require_safe
def api(request: HttpRequest) -> HttpResponse:
    """Show every call of the REST API, from its OpenAPI schema."""
    return render(request, "web/api_help.html", {"server": own_address(request), "page": api_page()})


@login_not_required  # a pipeline has no cookie, and the script says nothing of this lab
@require_safe
def pipeline_script(request: HttpRequest) -> HttpResponse:
    """Return the script that a pipeline runs."""
    return HttpResponse(script(), content_type="text/plain; charset=utf-8")


@needs("read")
@require_safe
def limits(request: HttpRequest) -> HttpResponse:
    """Show all limits by heading."""
    groups: dict[str, list[tuple[Limit, str]]] = {}
    for limit in all_limits():
        size = filesizeformat(limit.value) if limit.unit == "bytes" else ""
        groups.setdefault(limit.group, []).append((limit, size))
    return render(request, "web/limits.html", {"groups": groups.items()})
