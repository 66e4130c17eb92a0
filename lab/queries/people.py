# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads about accounts."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count

from lab.models import User


@dataclass(frozen=True, slots=True)
class PersonLine:
    """One account; invited: it has no password yet."""

    id: int
    username: str
    email: str
    role: str
    active: bool
    invited: bool
    experiments: int
    last_login: datetime | None
    date_joined: datetime


def person_lines() -> tuple[PersonLine, ...]:
    """Everybody, those who are let in first, by name."""
    rows = User.objects.annotate(amount=Count("experiments")).order_by("-is_active", "username")
    return tuple(
        PersonLine(
            id=user.pk,
            username=user.username,
            email=user.email,
            role=user.role,
            active=user.is_active,
            invited=user.last_login is None and not user.has_usable_password(),
            experiments=user.amount,
            last_login=user.last_login,
            date_joined=user.date_joined,
        )
        for user in rows
    )
