# SPDX-License-Identifier: GPL-2.0-or-later
"""What keeps the lab going, and how often: sent by the loop of one machine's worker, or by a fleet's beat."""

from __future__ import annotations

from typing import Any

from workers import tasks, wakeups

# Tasks and seconds.
UPKEEP: tuple[tuple[Any, float], ...] = (
    (tasks.return_dead, 5.0),
    (tasks.settle_experiments, 15.0),
    (tasks.poll_standing, 5.0),
    (tasks.raise_and_tell_alerts, 15.0),
    (tasks.tell_of_quarantines, 15.0),
    (tasks.forget_deliveries, 3600.0),
    (tasks.expire_files, 86400.0),
    (tasks.turn_off_left_on, 60.0),
    (tasks.forget_silent_workers, 3600.0),
)
# In a fleet these are sent as well; one machine's worker looks by itself, and tells hooks from a thread of its own.
FLEET: tuple[tuple[Any, float], ...] = (
    (wakeups.dispatch, 1.0),
    (tasks.deliver_events, 1.0),
)
