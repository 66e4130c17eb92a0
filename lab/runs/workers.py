# SPDX-License-Identifier: GPL-2.0-or-later
"""Workers report that they are alive; a worker that is silent for a day is forgotten."""

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection
from django.utils import timezone

from lab.leases.prepared import after, run_prepared
from lab.leases.upkeep import DONE, is_done
from lab.leases.version import LAB_VERSION, lab_version
from lab.models import Worker
from lab.models.hardware import GONE_S

# A worker that was silent for this long is forgotten: it was stopped, or its host is gone.
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


@dataclass(frozen=True, slots=True)
class ReportAnswer:
    """The answer to a report of a worker. lab: the version that was deployed last; done: whether a chore was done lately."""

    lab: str
    done: bool


# A thousand workers send it every few seconds, so it is one statement. It does not wait for the disk, since a report that a
# crash loses is repeated, and it returns what each worker would ask next.
_REPORT = f"""WITH lazily AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
UPDATE lab_worker SET host = %(host)s, queues = %(queues)s::jsonb, version = %(version)s, disk_free = %(disk_free)s,
  disk_total = %(disk_total)s, idle_reason = %(idle_reason)s, seen_at = statement_timestamp()
FROM lazily WHERE name = %(name)s RETURNING coalesce(({LAB_VERSION}), ''), EXISTS ({DONE})"""  # noqa: S608  our names


def report_worker(seen: WorkerReport, *, chore: str = "", within_s: float = 0.0) -> ReportAnswer:
    """Note that a worker is there, by the database's clock; returns whether a chore was done in the last within_s seconds."""
    columns = asdict(seen)
    if connection.vendor == "postgresql":
        asked = {"chore": chore, "every": within_s, "queues": json.dumps(seen.queues)}
        for lab, done in run_prepared(_REPORT, columns | asked):
            return ReportAnswer(lab, done)
    _note(columns)
    return ReportAnswer(lab_version(), bool(chore) and is_done(chore, within_s))


def _note(reported: dict[str, Any]) -> None:
    """Make the row of a worker's first report, or change it."""
    name = reported.pop("name")
    if not Worker.objects.filter(name=name).update(**reported, seen_at=after(0.0)):
        Worker.objects.update_or_create(
            name=name, defaults={**reported, "seen_at": after(0.0), "started_at": timezone.now()}
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
