# SPDX-License-Identifier: GPL-2.0-or-later
"""Periodic maintenance of the lab: sent by the loop of one machine's worker, or by a fleet's beat."""

from typing import Any

from workers import tasks, wakeups

# How often a rare chore is sent: the database says whether it is due. A lost message costs no more than this.
LOOK_S = 60.0
# Tasks and seconds.
UPKEEP: tuple[tuple[Any, float], ...] = (
    (tasks.return_dead, 5.0),
    (tasks.settle_experiments, 15.0),
    (tasks.summarise_trends, 15.0),
    (tasks.poll_standing, 5.0),
    (tasks.raise_and_tell_alerts, 15.0),
    (tasks.advance_automatic_bisections, 5.0),
    (tasks.tell_of_quarantines, 15.0),
    (tasks.forget_deliveries, LOOK_S),
    (tasks.expire_files, LOOK_S),
    (tasks.turn_off_left_on, 60.0),
    (tasks.forget_silent_workers, LOOK_S),
    (tasks.forget_old_audit, LOOK_S),
)
# In a fleet these are sent as well; one machine's worker looks by itself, and tells hooks from a thread of its own.
FLEET: tuple[tuple[Any, float], ...] = (
    (wakeups.dispatch, 1.0),
    (tasks.deliver_events, 1.0),
)
