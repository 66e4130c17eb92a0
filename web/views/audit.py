# SPDX-License-Identifier: GPL-2.0-or-later
"""The audit log, for operators."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from lab.audit.log import KEPT_DAYS, audit_page
from web.access import needs
from web.listing import page_number


@needs("operate")
@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show the log; ?refused=1 only what was refused, ?person=NAME of one person alone."""
    name, refused = request.GET.get("person", "")[:150], request.GET.get("refused") == "1"
    page = audit_page(page_number(request), name=name, refused=refused)
    return render(
        request, "web/audit.html", {"page": page, "name": name, "refused": refused, "days": KEPT_DAYS}
    )
