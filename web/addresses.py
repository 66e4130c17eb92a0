# SPDX-License-Identifier: GPL-2.0-or-later
"""The client's address of a request behind KPERFLAB_PROXIES reverse proxies, the same for every caller."""

from django.conf import settings
from django.http import HttpRequest

from lab.environment import is_loopback

_FORWARDED = ("HTTP_X_FORWARDED_FOR", "HTTP_FORWARDED", "HTTP_X_REAL_IP")


def client_address(request: HttpRequest) -> str:
    """Return the client's address: the peer's, or the address that the outermost of our own proxies saw.

    Anybody may have written the parts further left in X-Forwarded-For. The API's limits read the header alike.
    """
    peer = str(request.META.get("REMOTE_ADDR") or "")
    proxies = _proxies()
    passed = str(request.META.get("HTTP_X_FORWARDED_FOR") or "")
    if not proxies or not passed:
        return peer
    seen = [part.strip() for part in passed.split(",")]
    return seen[-min(proxies, len(seen))]


def _proxies() -> int:
    return int(str(settings.REST_FRAMEWORK["NUM_PROXIES"]))


def is_of_this_machine(request: HttpRequest) -> bool:
    """Return whether the request came over loopback or our own socket, and not through a proxy that is not configured."""
    if not _proxies() and any(name in request.META for name in _FORWARDED):
        return False
    address = client_address(request)
    # A Unix socket has no addresses.
    return not address or is_loopback(address)
