# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads of saved views."""

from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser
from django.db.models import Q

from lab.models import SavedView, User


@dataclass(frozen=True, slots=True)
class ViewLine:
    """A saved view; query as an address takes it, such as "?state=running"; mine: of who asks."""

    id: int
    name: str
    query: str
    shared: bool
    owner: str
    mine: bool


def views_for(user: User | AnonymousUser) -> tuple[ViewLine, ...]:
    """One's own views and those that others share, by name."""
    seen = Q(shared=True) | Q(user=user) if isinstance(user, User) else Q(shared=True)
    return _lines(seen, user)


def own_views(user: User) -> tuple[ViewLine, ...]:
    """One's own views, by name."""
    return _lines(Q(user=user), user)


def _lines(seen: Q, user: User | AnonymousUser) -> tuple[ViewLine, ...]:
    rows = SavedView.objects.filter(seen).select_related("user").order_by("name", "pk")
    return tuple(
        ViewLine(row.pk, row.name, row.query, row.shared, row.user.username, row.user_id == user.pk)
        for row in rows
    )
