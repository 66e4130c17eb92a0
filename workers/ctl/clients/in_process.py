# SPDX-License-Identifier: GPL-2.0-or-later
"""The REST API of this machine's lab without a server: each request goes to its view in this process, as an operator.

So a JSON document is the same with --local as over a server: the same code writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import httpx
from django.conf import settings
from django.core.handlers.wsgi import WSGIRequest
from django.urls import resolve

from lab.models import User
from workers.ctl.clients.http import Server
from workers.ctl.clients.remote import RemoteClient


def api_here() -> RemoteClient:
    """Return a client of the API in this process."""
    return RemoteClient(server_here())


def server_here() -> Server:
    """Return the API in this process as a server. A user of this machine's terminal may read everything."""
    transport = httpx.WSGITransport(app=_answer)
    return Server(settings.PUBLIC_URL, token="", say=lambda _: None, transport=transport)


def _answer(environ: dict[str, Any], start_response: Callable[..., object]) -> Iterable[bytes]:
    """Answer one request, past what guards the network: sign-in, https and the audit log."""
    request: Any = WSGIRequest(environ)
    request.user = request._force_auth_user = User(username="local", role=User.Role.OPERATOR)
    match = resolve(request.path_info)
    response: Any = match.func(request, *match.args, **match.kwargs)
    if not getattr(response, "is_rendered", True):
        response.render()
    start_response(f"{response.status_code} {response.reason_phrase}", list(response.items()))
    return [response.content]
