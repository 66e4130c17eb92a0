# SPDX-License-Identifier: GPL-2.0-or-later
"""A number for each request, a line in the log, and how long each view takes."""

import logging
import os
import re
import secrets
from collections.abc import Callable
from time import perf_counter
from urllib.parse import quote

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.multiprocess import MultiProcessCollector

from lab.operations.logs import about
from web.addresses import client_address

log = logging.getLogger("kperflab.request")

# Monitoring requests these every few seconds: not worth a line.
QUIET = frozenset({"health", "ready", "metrics"})
# Parts of addresses that grant access.
SECRET_PARTS = frozenset({"secret", "token"})
_GIVEN = re.compile(r"[A-Za-z0-9._-]{8,64}")


def log_requests(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Return the outermost middleware: all log lines of a request, and its answer, carry the request's number."""

    def middleware(request: HttpRequest) -> HttpResponse:
        number = _number(request)
        with about(request=number):
            began = perf_counter()
            response = get_response(request)
            seconds = perf_counter() - began
            view = _view(request)
            observe(view, request.method or "", response.status_code, seconds)
            level = logging.DEBUG if view in QUIET else logging.INFO
            log.log(
                level,
                "%s %s %d in %.0f ms for %s",
                request.method,
                told_path(request),
                response.status_code,
                1000 * seconds,
                client_address(request) or "the socket",
            )
        response.headers["X-Request-ID"] = number
        return response

    return middleware


def _number(request: HttpRequest) -> str:
    """Return the proxy's number if a proxy stands in front of us, else a new one: a client's own is ignored."""
    number = request.headers.get("X-Request-ID", "")
    if settings.REST_FRAMEWORK["NUM_PROXIES"] and _GIVEN.fullmatch(number):
        return number
    return secrets.token_hex(8)


def _view(request: HttpRequest) -> str:
    """Return the name of the view, "" if no address matches; there is a fixed number of names."""
    match = request.resolver_match
    return (match.view_name or "unnamed") if match else ""


def told_path(request: HttpRequest) -> str:
    """Return the path without parts that grant access, and without the query, which has people's searches."""
    path = request.path
    if request.resolver_match:
        for name, value in request.resolver_match.kwargs.items():
            if name in SECRET_PARTS:
                path = path.replace(str(value), "***")
    return quote(path, safe="/*:@+~!$&'(),;=")[:500]


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

REGISTRY = CollectorRegistry()
_REQUESTS = Histogram(
    "kperflab_http_request_duration_seconds",
    "From the first middleware to the answer's beginning.",
    ("view", "method", "status"),
    buckets=_BOUNDS,
    registry=REGISTRY,
)


def observe(view: str, method: str, status: int, seconds: float) -> None:
    """Count one request. Labels are few: views of ours, known methods, classes of statuses such as "4xx"."""
    word = method if method in _METHODS else "other"
    _REQUESTS.labels(view=view or "none", method=word, status=f"{status // 100}xx").observe(seconds)


def counted_requests() -> CollectorRegistry:
    """Return the counts of all web processes of this machine."""
    if not os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        return REGISTRY
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return registry
