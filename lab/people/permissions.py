# SPDX-License-Identifier: GPL-2.0-or-later
"""Permissions: roles of people, scopes of tokens. A token never allows more than its user's role."""

from collections.abc import Sequence
from typing import Final, Literal

from django.conf import settings
from django.contrib.auth.models import AnonymousUser

from lab.errors import NotAllowed
from lab.models.people import User

# read: look at everything; submit: submit, cancel, note, triage; operate: run the lab, act on others' work.
Action = Literal["read", "submit", "operate"]

ACTIONS: Final[tuple[Action, ...]] = ("read", "submit", "operate")
_OF_ROLE: Final[dict[str, Action]] = {
    User.Role.VIEWER: "read",
    User.Role.SUBMITTER: "submit",
    User.Role.OPERATOR: "operate",
}


def may(user: User | AnonymousUser, action: Action, *, scopes: Sequence[str] | None = None) -> bool:
    """Return whether a user may do this; scopes: those of the request's token, None without a token."""
    if scopes is not None and action not in scopes:
        return False
    if not isinstance(user, User):
        return action == "read" and settings.ANONYMOUS_MAY_READ
    if not user.is_active:
        return False
    return ACTIONS.index(action) <= ACTIONS.index(_OF_ROLE[user.role])


def check_may(user: User | None, action: Action, doing: str, *, scopes: Sequence[str] | None = None) -> None:
    """Raise NotAllowed unless a user may do this; None, at this machine's own terminal, may. doing: in words, such as "write notes"."""
    if user is not None and not may(user, action, scopes=scopes):
        who = "operators" if action == "operate" else "submitters and operators"
        raise NotAllowed(f"{user.username} is a {user.role}: only {who} can {doing}")


def may_change(
    user: User | AnonymousUser, owner: User | None, *, scopes: Sequence[str] | None = None
) -> bool:
    """Return whether a user may change or cancel an owner's object: the owner and operators may."""
    if isinstance(user, User) and owner is not None and user.pk == owner.pk:
        return may(user, "submit", scopes=scopes)
    return may(user, "operate", scopes=scopes)
