# SPDX-License-Identifier: GPL-2.0-or-later
"""Celery's beat, which survives steps of the clock and a broker that is away, and keeps no file.

It sends what upkeep.py lists. Everything is sent when it starts: whatever was missed meanwhile is made up for by one turn. What is
due seldom is so by when it was last done, which the database knows.
"""

import logging
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any

from celery.beat import ScheduleEntry, Scheduler
from celery.schedules import schedule

from lab.one_line import error_line
from workers.app import over_the_broker
from workers.upkeep import FLEET, UPKEEP
from workers.wakeups import depth

log = logging.getLogger(__name__)

# So many messages may lie in the queue of upkeep: its worker is away, and will not need older ones.
MOST_WAITING = 50
QUEUE = "upkeep"
_BEGAN, _BEGAN_S = datetime.now(UTC), monotonic()


def steady_now() -> datetime:
    """Time that only goes forward, at its own pace: when this process began, and what has passed since."""
    return _BEGAN + timedelta(seconds=monotonic() - _BEGAN_S)


class UpkeepScheduler(Scheduler):
    """The schedule of upkeep.py, in memory."""

    max_interval = 1
    # Each message takes a connection of the application's pool: a producer of beat's own would wait for ever at the start.
    producer = None  # type: ignore[assignment]

    def setup_schedule(self) -> None:
        """Make an entry of each line; due at once."""
        long_ago = steady_now() - timedelta(days=1)
        self.data = {
            task.name: ScheduleEntry(
                name=task.name,
                task=task.name,
                schedule=schedule(every_s, nowfun=steady_now, app=self.app),
                last_run_at=long_ago,
                options={"queue": QUEUE},
                app=self.app,
            )
            for task, every_s in (*UPKEEP, *FLEET)
        }

    def apply_entry(self, entry: ScheduleEntry, producer: Any = None) -> None:
        """Send one task; a broker that does not answer costs this turn alone."""
        try:
            if depth(QUEUE) < MOST_WAITING:
                self.apply_async(entry, producer=producer, advance=False)
        except Exception as exc:
            log.warning("%s could not be sent: %s", entry.name, error_line(exc))


def beat() -> None:
    """Send upkeep until a signal ends it. Raises MachineUnfit."""
    app = over_the_broker()
    app.Beat(
        scheduler_cls="workers.beat:UpkeepScheduler", loglevel="WARNING", quiet=True, remote_control=False
    ).run()
