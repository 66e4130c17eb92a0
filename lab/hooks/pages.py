# SPDX-License-Identifier: GPL-2.0-or-later
"""Read hooks and their deliveries: one's own, or all for operators."""

from typing import Any

from django.core.paginator import Page
from django.db.models import OuterRef, QuerySet, Subquery

from lab.models import Delivery, Hook, User
from lab.models.bounded import leaf
from lab.people.permissions import may

PAGE_SIZE = 50


def hook_rows(user: User) -> QuerySet[Any]:
    """The hooks that somebody may see and change, by name; with each, as `last`, the state of its newest delivery."""
    newest = Delivery.objects.filter(hook=OuterRef("pk")).order_by("-pk").values("state")[:1]
    rows = Hook.objects.select_related("owner", "tree").annotate(last=Subquery(newest))
    return rows if may(user, "operate") else rows.filter(owner=user)


def delivery_page(hook_id: int, number: int) -> Page[Any]:
    """Return one page of a hook's deliveries, the newest first."""
    return leaf(Delivery.objects.filter(hook=hook_id).order_by("-pk"), PAGE_SIZE, number)


def last_mail(user: User) -> Delivery | None:
    """Return the newest mail of somebody's finished experiments, None without any."""
    return Delivery.objects.filter(user=user).order_by("-pk").first()
