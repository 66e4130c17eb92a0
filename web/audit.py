# SPDX-License-Identifier: GPL-2.0-or-later
"""Middleware that keeps the audit log: each request that changes something, and each that is refused.

A view may say more than a status does: `request.audit_rule = "wrong password"`.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Final

from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from prometheus_client import Counter

from lab.audit.log import Request, note_request
from lab.models import User
from web.addresses import client_address
from web.requestlog import REGISTRY, told_path

log = logging.getLogger("kperflab.audit")

RULES: Final[Mapping[int, str]] = {
    400: "malformed",
    401: "not signed in",
    403: "not allowed",
    409: "in conflict",
    412: "outdated",
    413: "too large",
    415: "of another type",
    422: "refused",
    429: "too often",
    431: "too large",
}
_READS = frozenset({"GET", "HEAD", "OPTIONS"})
# Machines that boot over the network post a run's records, a request for each piece.
_OF_MACHINES = "netboot_"
_REFUSED = Counter(
    "kperflab_http_refused",
    "Requests that were refused, by reason.",
    ("view", "rule"),
    registry=REGISTRY,
)


def keep_audit(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Return the middleware; it must stand inside the one that sets request.user."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        route = (request.resolver_match.view_name or "unnamed") if request.resolver_match else ""
        rule = _rule(request, response)
        if rule:
            _REFUSED.labels(view=route or "none", rule=rule).inc()
        changes = request.method not in _READS and response.status_code < 400
        if route and (rule or changes) and not route.startswith(_OF_MACHINES):
            _note(request, response, route, rule)
        return response

    return middleware


def _rule(request: HttpRequest, response: HttpResponse) -> str:
    special = getattr(request, "audit_rule", "")
    if special:
        return str(special)
    if response.status_code == 302 and response.headers["Location"].startswith("/sign-in/"):
        return "not signed in" if request.method not in _READS else ""
    return RULES.get(response.status_code, "")


def _note(request: HttpRequest, response: HttpResponse, route: str, rule: str) -> None:
    person = request.user if isinstance(request.user, User) else None
    try:
        note_request(
            Request(
                person=person,
                address=client_address(request),
                method=request.method or "",
                route=route,
                path=told_path(request),
                status=response.status_code,
                rule=rule,
            )
        )
    except DatabaseError:
        # The answer matters more than its line in the log, which a database that is down cannot store.
        log.exception("the audit log could not be written")
