# SPDX-License-Identifier: GPL-2.0-or-later
"""Workers report that they are alive; a worker that is silent for a day is forgotten."""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import NamedTuple

from django.utils import timezone

from lab.leases.clock import after
from lab.models import Worker
from lab.models.hardware import GONE_S

# A worker that was silent for so long is forgotten: it was stopped, or its host is gone.
FORGOTTEN_S = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """A worker's report on itself. name: host:pid:start, as in claims. disk_free, disk_total: bytes on its disk."""

    name: str
    host: str
    queues: list[str]
    version: str
    disk_free: int | None
    disk_total: int | None
    idle_reason: str


def report_worker(seen: WorkerReport) -> None:
    """Note that a worker is there, by the database's clock."""
    told = asdict(seen)
    name = told.pop("name")
    # One statement, for a thousand workers send it: only the first report makes the row.
    if not Worker.objects.filter(name=name).update(**told, seen_at=after(0.0)):
        Worker.objects.update_or_create(
            name=name, defaults={**told, "seen_at": after(0.0), "started_at": timezone.now()}
        )


def worker_left(name: str) -> None:
    """Record that a worker stopped on request."""
    Worker.objects.filter(name=name).delete()


def forget_workers() -> int:
    """Remove those that were silent for a day; returns how many."""
    removed, _ = Worker.objects.filter(seen_at__lt=after(-FORGOTTEN_S)).delete()
    return removed


class ReportedWorker(NamedTuple):
    """A worker as lists show it. silent_s: since its last report, when it was read."""

    name: str
    host: str
    queues: list[str]
    version: str
    seen_at: datetime
    disk_free: int | None
    disk_total: int | None
    idle_reason: str
    silent_s: float

    @property
    def gone(self) -> bool:
        """Return whether it has not reported for GONE_S seconds."""
        return self.silent_s > GONE_S


def reported_workers() -> tuple[ReportedWorker, ...]:
    """Return all workers that reported recently, by name."""
    now = timezone.now()
    rows = Worker.objects.order_by("name").values_list(*ReportedWorker._fields[:-1])
    return tuple(ReportedWorker._make((*row, max(0.0, (now - row[4]).total_seconds()))) for row in rows)
