# SPDX-License-Identifier: GPL-2.0-or-later
"""Liveness of this process and readiness of the lab, for monitoring."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from lab.operations.readiness import readiness
from web.oversight import may_watch


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
    """200 where everything the lab needs is there, else 503; problems are shown to permitted clients."""
    checks = readiness()
    ok = all(check.ok for check in checks)
    told: dict[str, object] = {"ready": ok}
    if may_watch(request):
        told["checks"] = [{"name": one.name, "ok": one.ok, "said": one.message} for one in checks]
    return JsonResponse(told, status=200 if ok else 503, json_dumps_params={"ensure_ascii": False})
