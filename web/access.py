# SPDX-License-Identifier: GPL-2.0-or-later
"""Readers of a page and their permissions; the check is the first line above each view; who may watch the lab itself."""

from collections.abc import Callable
from functools import wraps
from ipaddress import ip_address
from typing import Any, Concatenate, ParamSpec, cast
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import url_has_allowed_host_and_scheme
from rest_framework.exceptions import AuthenticationFailed

from lab.models import User
from lab.people.permissions import ACTIONS, Action, may
from web.addresses import client_address, is_of_this_machine
from web.api.auth import TokenAuth

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponse]


class SignInFirst(LoginRequiredMiddleware):
    """Redirect every page to the sign-in where anonymous people may not read.

    Files come before it, views marked `login_not_required` pass, and the API answers for itself.
    """

    def process_view(
        self, request: HttpRequest, view_func: Any, view_args: Any, view_kwargs: Any
    ) -> HttpResponseBase | None:
        """Send strangers away, or let the page answer."""
        if settings.ANONYMOUS_MAY_READ:
            return None
        return super().process_view(request, view_func, view_args, view_kwargs)


def person(request: HttpRequest) -> User:
    """Return the signed-in account; for pages that `needs` guards. Raises PermissionDenied."""
    if not isinstance(request.user, User):
        raise PermissionDenied
    return request.user


def permissions(request: HttpRequest) -> dict[str, bool]:
    """Context of every template: what the reader may do, so that no page offers what it would refuse."""
    return {f"may_{action}": may(request.user, action) for action in ACTIONS}


def _way_back(request: HttpRequest) -> str:
    """Return the address to go to after signing in: this page, or the page of its form."""
    if request.method in {"GET", "HEAD"}:
        return request.get_full_path()
    came_from = request.headers.get("Referer", "")
    if not url_has_allowed_host_and_scheme(
        came_from, {request.get_host()}, require_https=request.is_secure()
    ):
        return "/"
    return urlsplit(came_from)._replace(scheme="", netloc="").geturl()


def needs(action: Action) -> Callable[[View[P]], View[P]]:
    """Let a page be seen by those who may do this; the others sign in first, or get a 403 if they have."""

    def decorate(view: View[P]) -> View[P]:
        @wraps(view)
        def checked(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
            if may(request.user, action):
                return view(request, *args, **kwargs)
            if request.user.is_authenticated:
                raise PermissionDenied
            return redirect_to_login(_way_back(request))

        return cast("View[P]", checked)

    return decorate


def may_watch(request: HttpRequest) -> bool:
    """Return whether the client may see more than "ok"; False also where the account cannot be looked up."""
    return is_of_this_machine(request) or _from_a_network(request) or _operates(request)


def _from_a_network(request: HttpRequest) -> bool:
    try:
        address = ip_address(client_address(request))
    except ValueError:
        return False
    return any(address in network for network in settings.METRICS_FROM)


def _operates(request: HttpRequest) -> bool:
    """By a session, or `Authorization: Token …` of an operator with the scope "operate"."""
    try:
        credentials = TokenAuth().authenticate(request)
        if credentials is not None:
            user, token = credentials
            return may(user, "operate", scopes=token.scopes)
        return may(request.user, "operate")
    except (AuthenticationFailed, DatabaseError):
        return False
