# SPDX-License-Identifier: GPL-2.0-or-later
"""The caller's account and tokens, and the address that exchanges a password for a token."""

from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response

from lab.from_attributes import attributes
from lab.models import Token, User
from lab.people.accounts import set_finish_mails
from lab.people.permissions import ACTIONS, may
from lab.people.tokens import (
    DEFAULT_DAYS,
    LONGEST_NAME,
    MOST_DAYS,
    has_ended,
    issue_token,
    list_tokens,
    revoke_token,
)
from lab.people.tokens import scopes_of as scopes_of_user
from web.api.auth import InPerson, OwnThings, PasswordAuth, SignedIn, caller, scopes_of
from web.api.fields import Body, Text, Truth, Whole, Word, taken
from web.api.filters import PAGING, refuse_others
from web.api.resource import View
from web.api.shapes import Row


class MeShape(serializers.Serializer[Any]):
    """The caller; an anonymous caller has no name. scopes: of the request's token."""

    username = serializers.CharField(allow_blank=True)
    role = serializers.ChoiceField(User.Role.choices, allow_null=True)
    scopes = serializers.ListField(child=serializers.ChoiceField(ACTIONS), allow_null=True)
    may = serializers.ListField(child=serializers.ChoiceField(ACTIONS))
    email = serializers.CharField(allow_blank=True)
    finish_mails = serializers.BooleanField(
        help_text="Send a mail when an experiment of this person finishes, if they have an address."
    )


class WantedMe(Body):
    """The part of an account that its owner sets."""

    finish_mails = Truth()


class TokenShape(serializers.Serializer[Any]):
    """A token without its text."""

    id = serializers.CharField()
    name = serializers.CharField()
    scopes = serializers.ListField(child=serializers.ChoiceField(ACTIONS))
    created = serializers.DateTimeField()
    expiry = serializers.DateTimeField(allow_null=True)
    used_at = serializers.DateTimeField(allow_null=True)
    ended = serializers.BooleanField()


class IssuedShape(TokenShape):
    """A token with its text, which is returned only this once."""

    token = serializers.CharField()


class WantedToken(Body):
    """The requested token."""

    name = Text(min_length=1, max_length=LONGEST_NAME)
    scopes = serializers.ListField(child=Word(ACTIONS), min_length=1, max_length=10)
    days = Whole(
        min_value=1,
        max_value=MOST_DAYS,
        default=DEFAULT_DAYS,
        allow_null=True,
        help_text="null: it never ends.",
    )


class WantedLogin(Body):
    """The requested token; by default it has all scopes that the role allows."""

    name = Text(min_length=1, max_length=LONGEST_NAME, default="labctl")
    scopes = serializers.ListField(child=Word(ACTIONS), required=False, min_length=1, max_length=10)
    days = Whole(min_value=1, max_value=MOST_DAYS, default=DEFAULT_DAYS, allow_null=True)


class Me(View):
    """The caller."""

    serializer_class = MeShape

    def get_permissions(self) -> list[BasePermission]:
        """Anybody may read; only signed-in users may change."""
        return [OwnThings()] if getattr(self, "action", None) == "change" else []

    @extend_schema(operation_id="me", responses=MeShape)
    def show(self, request: Request) -> Response:
        """Return the caller and their permissions."""
        refuse_others(request)
        return self._answer(request)

    @extend_schema(operation_id="change_me", request=WantedMe, responses=MeShape)
    def change(self, request: Request) -> Response:
        """Change the given settings of one's own account."""
        body = taken(WantedMe, request, partial=True)
        if "finish_mails" in body:
            set_finish_mails(caller(request), on=body["finish_mails"])
        return self._answer(request)

    def _answer(self, request: Request) -> Response:
        user, scopes = request.user, scopes_of(request)
        return Response(
            {
                "username": user.get_username(),
                "role": getattr(user, "role", None),
                "scopes": scopes,
                "may": [action for action in ACTIONS if may(user, action, scopes=scopes)],
                "email": getattr(user, "email", ""),
                "finish_mails": getattr(user, "finish_mails", False),
            }
        )


class Tokens(View):
    """One's own tokens. A token may be stolen: it cannot create tokens, and can revoke only itself."""

    serializer_class = TokenShape
    pagination_class = None

    def get_permissions(self) -> list[BasePermission]:
        """Signed-in users may read and revoke; creating needs a session or a password, not a token."""
        return [InPerson() if getattr(self, "action", None) == "create" else SignedIn()]

    def list(self, request: Request) -> Response:
        """One's own tokens, the newest first."""
        refuse_others(request, PAGING)
        return Response([_shown(token) for token in list_tokens(caller(request))])

    @extend_schema(request=WantedToken, responses={201: IssuedShape})
    def create(self, request: Request) -> Response:
        """Make a token; its text is returned only now."""
        token, text = issue_token(user=caller(request), **taken(WantedToken, request))
        return Response({**_shown(token), "token": text}, status=201)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, id: str) -> HttpResponse:  # noqa: A002  the address says so
        """End a token."""
        if isinstance(request.auth, Token) and request.auth.token_key != id:
            raise PermissionDenied(InPerson.message)
        revoke_token(user=caller(request), token_id=id)
        return HttpResponse(status=204)


class Login(View):
    """A token for a user name and a password."""

    authentication_classes = (PasswordAuth,)
    permission_classes = (SignedIn,)
    serializer_class = WantedLogin

    @extend_schema(operation_id="login", request=WantedLogin, responses={201: IssuedShape})
    def create(self, request: Request) -> Response:
        """Create a token from a name and a password (HTTP Basic); it is shown only once."""
        user = caller(request)
        wanted: dict[str, Any] = {"scopes": scopes_of_user(user)} | taken(WantedLogin, request)
        token, text = issue_token(user=user, **wanted)
        return Response({**_shown(token), "token": text}, status=201)


def _shown(token: Token) -> Row:
    return {
        "id": token.token_key,
        **attributes(token, ("name", "scopes", "created", "expiry", "used_at")),
        "ended": has_ended(token),
    }
