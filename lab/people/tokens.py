# SPDX-License-Identifier: GPL-2.0-or-later
"""API tokens: shown once, stored as a hash, revoked by their owner or by time."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.utils import timezone
from knox.crypto import hash_token

from lab.errors import FieldRefused, UnknownRow
from lab.models import Token, User
from lab.people.permissions import ACTIONS, Action, may
from lab.validation_messages import nearest

DEFAULT_DAYS = 90
MOST_DAYS = 3660
LONGEST_NAME = 100
# Without this, each request of a busy script would write a row.
_NOTED_EVERY = timedelta(minutes=1)


def issue_token(
    *, user: User, name: str, scopes: Sequence[str], days: int | None = DEFAULT_DAYS
) -> tuple[Token, str]:
    """Make a token; returns its row and the plain text, which is not shown again.

    scopes: some of "read", "submit", "operate", each within the user's role. days: until it ends, None for never.
    Raises FieldRefused with the field "name", "scopes" or "days".
    """
    named = _checked_name(name)
    wanted = _checked_scopes(user, scopes)
    if days is not None and not 1 <= days <= MOST_DAYS:
        raise FieldRefused("days", f"{days} is not a number of days from 1 to {MOST_DAYS}")
    expiry = None if days is None else timedelta(days=days)
    token, text = Token.objects.create(user=user, expiry=expiry, name=named, scopes=wanted)
    return token, str(text)


def list_tokens(user: User) -> tuple[Token, ...]:
    """A user's tokens, the newest first; ended ones too."""
    return tuple(Token.objects.filter(user=user).order_by("-created", "pk"))


def has_ended(token: Token, now: datetime | None = None) -> bool:
    """Return whether a token's time is over."""
    return token.expiry is not None and bool(token.expiry <= (now or timezone.now()))


def revoke_token(*, user: User, token_id: str) -> None:
    """End one of a user's own tokens for good; token_id: its beginning, `token_key`. Raises UnknownRow."""
    deleted, _ = Token.objects.filter(user=user, token_key=token_id).delete()
    if not deleted:
        raise UnknownRow(f'you have no token "{token_id[:20]}"')


def end_tokens(user: User) -> int:
    """End all tokens of a user and return how many, as after a new password: a person who knew the old one may have created some."""
    deleted: int = Token.objects.filter(user=user).delete()[0]
    return deleted


def find_token(text: str) -> Token | None:
    """Return the row of a valid token with its user, and record that it was used."""
    token: Token | None = Token.objects.select_related("user").filter(digest=hash_token(text)).first()
    now = timezone.now()
    if token is None or has_ended(token, now) or not token.user.is_active:
        return None
    if token.used_at is None or now - token.used_at > _NOTED_EVERY:
        Token.objects.filter(pk=token.pk).update(used_at=now)
    return token


def scopes_of(user: User) -> list[Action]:
    """All that a user's role allows a token."""
    return [action for action in ACTIONS if may(user, action)]


def _checked_name(name: str) -> str:
    plain_name = " ".join(name.split())
    if not plain_name or len(plain_name) > LONGEST_NAME or not plain_name.isprintable():
        raise FieldRefused(
            "name", f"give the token a name of 1 to {LONGEST_NAME} characters, such as where it is used"
        )
    return plain_name


def _checked_scopes(user: User, scopes: Sequence[str]) -> list[str]:
    for scope in scopes:
        if scope not in ACTIONS:
            raise FieldRefused("scopes", f'there is no scope "{scope[:40]}"; {nearest(scope[:40], ACTIONS)}')
    allowed = scopes_of(user)
    beyond = [scope for scope in scopes if scope not in allowed]
    if beyond:
        raise FieldRefused(
            "scopes", f"a {user.role} may not {beyond[0]}; choose from {', '.join(allowed) or 'none'}"
        )
    if not scopes:
        raise FieldRefused("scopes", f"choose at least one of {', '.join(allowed)}")
    return [action for action in ACTIONS if action in scopes]
