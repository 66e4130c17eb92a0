# SPDX-License-Identifier: GPL-2.0-or-later
"""Liveness of this process, readiness of the lab and its figures for Prometheus, for monitoring."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST

from lab.operations.readiness import readiness
from web.access import may_watch
from web.metrics import exposition


@login_not_required
@never_cache
@require_safe
def alive(request: HttpRequest) -> HttpResponse:
    """Answer "ok" without asking anybody: a process whose database is down must not be restarted for it."""
    return HttpResponse("ok\n", content_type="text/plain")


@login_not_required
@never_cache
@require_safe
def ready(request: HttpRequest) -> HttpResponse:
    """Answer 200 if everything that the lab needs is available, else 503; problems are shown to permitted clients."""
    checks = readiness()
    ok = all(check.ok for check in checks)
    answer: dict[str, object] = {"ready": ok}
    if may_watch(request):
        answer["checks"] = [{"name": check.name, "ok": check.ok, "said": check.message} for check in checks]
    return JsonResponse(answer, status=200 if ok else 503, json_dumps_params={"ensure_ascii": False})


@login_not_required
@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Return all figures; 403 with one line for clients that may not see them."""
    if not may_watch(request):
        text = "these figures are for operators: send an operator's token, or add your network to KPERFLAB_METRICS_FROM\n"
        return HttpResponse(text, content_type="text/plain", status=403)
    return HttpResponse(exposition(), content_type=CONTENT_TYPE_LATEST)
