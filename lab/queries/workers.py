# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads about the lab's workers, and which queues they take from."""

from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from lab.models import Worker
from lab.queue.waiting import GONE_S


@dataclass(frozen=True, slots=True)
class WorkerLine:
    """One worker. gone: nothing was heard of it for GONE_S; idle_reason: why it takes nothing, "" while it does."""

    id: int
    name: str
    host: str
    queues: tuple[str, ...]
    version: str
    started_at: datetime
    seen_at: datetime
    silent_s: float
    gone: bool
    disk_free: int | None
    disk_total: int | None
    idle_reason: str


def worker_lines() -> tuple[WorkerLine, ...]:
    """Every worker that was heard of lately, by name."""
    now = timezone.now()
    return tuple(_line(one, now) for one in Worker.objects.order_by("name"))


def _line(one: Worker, now: datetime) -> WorkerLine:
    silent_s = max(0.0, (now - one.seen_at).total_seconds())
    return WorkerLine(
        id=one.pk,
        name=one.name,
        host=one.host,
        queues=tuple(str(queue) for queue in one.queues),
        version=one.version,
        started_at=one.started_at,
        seen_at=one.seen_at,
        silent_s=silent_s,
        gone=silent_s > GONE_S,
        disk_free=one.disk_free,
        disk_total=one.disk_total,
        idle_reason=one.idle_reason,
    )
