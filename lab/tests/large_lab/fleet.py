# SPDX-License-Identifier: GPL-2.0-or-later
"""The machines of a made lab: targets in groups, their workers, health checks and quarantines."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.utils import timezone

from lab.models import HealthCheck, Quarantine, Target, Worker

CHECKED_DAYS = 60
# Of a hundred targets.
_QUARANTINED, _DISABLED, _SILENT = 2, 1, 3
_GROUP = 25


def make_targets(number: int) -> list[Target]:
    """Make targets in groups of some twenty; every twenty-fifth is in none."""
    groups = max(2, number // _GROUP)
    now = timezone.now()
    rows = [
        Target(
            name=f"board-{at:04d}",
            group="" if at % _GROUP == _GROUP - 1 else f"boards-{at % groups:02d}",
            driver="libvirt",
            vcpus=4,
            memory_mib=4096,
            enabled=at % 100 >= _DISABLED,
        )
        for at in range(number)
    ]
    for at, row in enumerate(rows):
        if _is_quarantined(at):
            row.faults, row.quarantined_at = 3, now - timedelta(hours=at % 30)
            row.quarantine_reason = f"3 boots in a row were lost: the console of {row.name} ended early"
    return Target.objects.bulk_create(rows)


def _is_quarantined(at: int) -> bool:
    return 50 <= at % 100 < 50 + _QUARANTINED


def make_history(targets: list[Target], now: datetime) -> None:
    """A health check of each target a day, some quarantines, and a worker for each."""
    checks = (
        HealthCheck(
            target=target,
            at=now - timedelta(days=day, minutes=at % 1400),
            ok=(at + day) % 97 != 0,
            metric="ns_per_open",
            value=1000.0 + at % 50 + (day * 7 + at) % 11,
            environment={"unit": "ns", "release": "6.1.0-known", "guest": {"tuning": {}}},
        )
        for day in range(CHECKED_DAYS)
        for at, target in enumerate(targets)
    )
    HealthCheck.objects.bulk_create(checks, batch_size=5000)
    Quarantine.objects.bulk_create(
        Quarantine(
            target=target,
            reason=target.quarantine_reason or "3 boots in a row were lost",
            began_at=target.quarantined_at or now - timedelta(days=at % 50 + 2),
            ended_at=None if target.quarantined_at else now - timedelta(days=at % 50 + 1),
            began_told_at=now,
            ended_told_at=None if target.quarantined_at else now,
        )
        for at, target in enumerate(targets)
        if target.quarantined_at or at % 10 == 0
    )
    Worker.objects.bulk_create(_workers(targets, now), batch_size=1000)


def _workers(targets: list[Target], now: datetime) -> list[Worker]:
    rows = [
        Worker(
            name=f"host-{at // 20:03d}:{1000 + at}:1",
            host=f"host-{at // 20:03d}",
            queues=[f"target.{target.name}"],
            version="1.0",
            seen_at=now - (timedelta(hours=2) if at % 100 < _SILENT else timedelta(0)),
            disk_free=50 << 30,
            disk_total=200 << 30,
        )
        for at, target in enumerate(targets)
    ]
    hosts = sorted({row.host for row in rows})
    builders = [
        Worker(name=f"{host}:1:1", host=host, queues=["build.x86_64.gcc"], version="1.0", seen_at=now)
        for host in hosts
    ]
    return [*rows, *builders]
