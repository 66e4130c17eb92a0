# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab's figures, for Prometheus."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST

from web.metrics import exposition
from web.oversight import may_watch


@login_not_required
@never_cache
@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """All of them; 403 with one line for who may not see them."""
    if not may_watch(request):
        text = "these figures are for operators: send an operator's token, or add your network to KPERFLAB_METRICS_FROM\n"
        return HttpResponse(text, content_type="text/plain", status=403)
    return HttpResponse(exposition(), content_type=CONTENT_TYPE_LATEST)
