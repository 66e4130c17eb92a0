# SPDX-License-Identifier: GPL-2.0-or-later
"""Authentication and permissions: tokens with scopes, a browser's session, lab/people/permissions.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from django.conf import settings
from knox.auth import TokenAuthentication
from rest_framework.authentication import BasicAuthentication
from rest_framework.exceptions import AuthenticationFailed, Throttled
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request
from rest_framework.throttling import AnonRateThrottle, UserRateThrottle

from lab.models import Token, User
from lab.people.permissions import Action, may
from lab.people.sign_in import LOCKED, LOCKED_S, too_many_wrong_from
from lab.people.tokens import find_token
from web.addresses import client_address

if TYPE_CHECKING:
    from rest_framework.views import APIView


class TokenAuth(TokenAuthentication):  # type: ignore[misc]  # the library has no types
    """`Authorization: Token …`; the token's row, with its scopes, becomes request.auth."""

    def authenticate_credentials(self, token: bytes) -> tuple[User, Token]:
        """Return the user and the row of a valid token. Raises AuthenticationFailed."""
        known_token = find_token(token.decode(errors="replace"))
        if known_token is None:
            raise AuthenticationFailed("this token is not known here, or it has expired; create a new one")
        return known_token.user, known_token


class PasswordAuth(BasicAuthentication):
    """User name and password, for the one address that gives a token for them."""

    www_authenticate_realm = "kperflab"

    def authenticate_credentials(self, userid: str, password: str, request: Any = None) -> tuple[User, None]:
        """Check a password; each attempt counts, right or wrong. Raises AuthenticationFailed, Throttled."""
        limit = LoginLimit()
        if not limit.allow_request(request, None):  # type: ignore[arg-type]
            raise Throttled(wait=limit.wait())
        if too_many_wrong_from(client_address(request)):
            raise Throttled(wait=LOCKED_S, detail=LOCKED)
        if "\0" in userid or "\0" in password:
            raise AuthenticationFailed("a name and a password must not contain NUL")
        try:
            return super().authenticate_credentials(userid, password, request)
        except AuthenticationFailed:
            # django-axes sets it on the request that it was given, which its middleware does not see here.
            if getattr(request, "axes_locked_out", False):
                raise Throttled(wait=LOCKED_S, detail=LOCKED) from None
            raise


def caller(request: Request) -> User:
    """Return the account that asks; `Allowed` lets nobody without one write."""
    return cast("User", request.user)


def scopes_of(request: Request) -> Sequence[str] | None:
    """Return the scopes of the request's token; None without a token."""
    return request.auth.scopes if isinstance(request.auth, Token) else None


class Allowed(BasePermission):
    """The permission for each action, from a view's `needed`; reading needs "read"."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Return whether this person, with this token, may do the action."""
        action = needed_for(view)
        if action is None or may(request.user, action, scopes=scopes_of(request)):
            return True
        self.message = _why_not(request, action)
        return False


class SignedIn(BasePermission):
    """The permission of signed-in users."""

    message = "sign in, or send a token"

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Return True if the request's sender is known."""
        return getattr(view, "action", None) is None or bool(request.user and request.user.is_authenticated)


class OwnThings(SignedIn):
    """The permission of signed-in users; a token that writes needs the scope "submit", whatever the user's role."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Return whether this token may read or change its user's own rows."""
        if not super().has_permission(request, view):
            return False
        scopes = scopes_of(request)
        wanted = "read" if request.method in SAFE_METHODS else "submit"
        if scopes is None or wanted in scopes:
            return True
        self.message = f'this token has no scope "{wanted}", only {", ".join(scopes)}'
        return False


class InPerson(SignedIn):
    """The permission of users who signed in or gave a password: a stolen token must not suffice."""

    message = "a token cannot do this: sign in, or send your name and password to /api/v1/login/"

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Return True for a known user without a token."""
        return super().has_permission(request, view) and scopes_of(request) is None


def needed_for(view: Any) -> Action | None:
    """Return the permission that a request needs; None for methods that the view refuses anyway."""
    needed: Mapping[str, Action] = getattr(view, "needed", {})
    name = getattr(view, "action", None)
    if name is not None and name in needed:
        return needed[name]
    return "read" if name is not None else None


def _why_not(request: Request, action: Action) -> str:
    scopes = scopes_of(request)
    if scopes is not None and may(request.user, action):
        return (
            f'this token has no scope "{action}", only {", ".join(scopes) or "none"}; use a token that has it'
        )
    role = getattr(request.user, "role", "")
    return f"a {role} may not {action}; ask an operator of this lab" if role else f"sign in to {action}"


class PersonLimit(UserRateThrottle):
    """Limit the requests of a signed-in user."""

    scope = "person"

    def get_rate(self) -> str:
        """Return the current rate in settings.API_RATES."""
        return settings.API_RATES[self.scope]

    def get_cache_key(self, request: object, view: object) -> str | None:
        """Return None for anonymous clients, which StrangerLimit counts."""
        user = getattr(request, "user", None)
        return super().get_cache_key(request, view) if user and user.is_authenticated else None  # type: ignore[arg-type]


class StrangerLimit(AnonRateThrottle):
    """Limit anonymous requests, by address."""

    scope = "stranger"

    def get_rate(self) -> str:
        """Return the current rate in settings.API_RATES."""
        return settings.API_RATES[self.scope]


class LoginLimit(StrangerLimit):
    """Limit the passwords tried from one address, right or wrong."""

    scope = "login"

    def get_cache_key(self, request: object, view: object) -> str:
        """Count by address, before anybody is identified."""
        ident = self.get_ident(request)  # type: ignore[arg-type]
        return self.cache_format % {"scope": self.scope, "ident": ident}


class SubmitLimit(PersonLimit):
    """Limit submissions and previews: each description is applied to a tree."""

    scope = "submit"
