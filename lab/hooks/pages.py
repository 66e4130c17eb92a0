# SPDX-License-Identifier: GPL-2.0-or-later
"""Read hooks and their deliveries: one's own, or all for operators."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import OuterRef, QuerySet, Subquery
from django.utils import timezone

from lab.models import Delivery, Hook, User
from lab.people.permissions import may

PAGE_SIZE = 50


@dataclass(frozen=True, slots=True)
class DeliveryLine:
    """One delivery. next_at: when it is tried, None once it is over; body: the payload, as JSON."""

    id: int
    event: str
    subject: str
    state: str
    attempts: int
    status: int | None
    answer: str
    body: str
    created_at: datetime
    delivered_at: datetime | None
    next_at: datetime | None


def hook_rows(user: User) -> QuerySet[Any]:
    """The hooks that somebody may see and change, by name; with each, as `last`, the state of its newest delivery."""
    newest = Delivery.objects.filter(hook=OuterRef("pk")).order_by("-pk").values("state")[:1]
    rows = Hook.objects.select_related("owner", "tree").annotate(last=Subquery(newest))
    return rows if may(user, "operate") else rows.filter(owner=user)


def delivery_page(hook_id: int, number: int) -> tuple[tuple[DeliveryLine, ...], Page[Any]]:
    """One page of a hook's deliveries, the newest first, and where it is among the others."""
    page = Paginator(Delivery.objects.filter(hook=hook_id).order_by("-pk"), PAGE_SIZE).get_page(number)
    return tuple(_delivery(row) for row in page.object_list), page


def last_mail(user: User) -> DeliveryLine | None:
    """Return the newest mail of somebody's finished experiments, None without any."""
    row = Delivery.objects.filter(user=user).order_by("-pk").first()
    return _delivery(row) if row else None


def _delivery(row: Delivery) -> DeliveryLine:
    return DeliveryLine(
        id=row.pk,
        event=row.event,
        subject=row.subject,
        state=row.state,
        attempts=row.attempts,
        status=row.status,
        answer=row.answer,
        body=json.dumps(row.payload, indent=2),
        created_at=row.created_at,
        delivered_at=row.delivered_at,
        next_at=max(row.next_at, timezone.now()) if row.state == "waiting" else None,
    )
