# SPDX-License-Identifier: GPL-2.0-or-later
"""The limits that what people send meets, on one page."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.defaultfilters import filesizeformat
from django.views.decorators.http import require_safe

from lab.operations.limit_table import Limit
from web.access import needs
from web.limits import all_limits


@needs("read")
@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show all limits by heading."""
    groups: dict[str, list[tuple[Limit, str]]] = {}
    for limit in all_limits():
        groups.setdefault(limit.group, []).append((limit, _size(limit)))
    return render(request, "web/limits.html", {"groups": groups.items()})


def _size(limit: Limit) -> str:
    """Return bytes as people read them, "" for other units."""
    return filesizeformat(limit.value) if limit.unit == "bytes" else ""
