# SPDX-License-Identifier: GPL-2.0-or-later
"""Workers say that they are there; who has been silent for long is forgotten."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from django.utils import timezone

from lab.models import Worker
from lab.queue.clock import after

# A worker that was silent for so long is forgotten: it was stopped, or its host is gone.
FORGOTTEN_S = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Seen:
    """What a worker says of itself. name: host:pid:start, as in the claims. disk_free, disk_total: bytes where it works."""

    name: str
    host: str
    queues: list[str]
    version: str
    disk_free: int | None
    disk_total: int | None
    idle_reason: str


def report_worker(seen: Seen) -> None:
    """Note that a worker is there, by the database's clock."""
    told = asdict(seen)
    name = told.pop("name")
    Worker.objects.update_or_create(
        name=name,
        defaults={**told, "seen_at": after(0.0)},
        create_defaults={**told, "name": name, "seen_at": after(0.0), "started_at": timezone.now()},
    )


def worker_left(name: str) -> None:
    """A worker stopped as it was told to."""
    Worker.objects.filter(name=name).delete()


def forget_workers() -> int:
    """Remove those that were silent for a day; returns how many."""
    removed, _ = Worker.objects.filter(seen_at__lt=after(-FORGOTTEN_S)).delete()
    return removed
