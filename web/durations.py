# SPDX-License-Identifier: GPL-2.0-or-later
"""The duration of requests, by view: kept by each web process, added up over all of them when read.

With PROMETHEUS_MULTIPROC_DIR set (web/serving.py does) every process writes its own file there, and whichever is asked reads all.
"""

import os

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.multiprocess import MultiProcessCollector

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
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return REGISTRY
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return registry
