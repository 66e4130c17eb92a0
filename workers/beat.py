# SPDX-License-Identifier: GPL-2.0-or-later
"""A fleet's scheduler: sends the tasks in upkeep.py to the workers of upkeep, by a clock that never steps, and keeps no file.

Every task is sent at the start: one turn makes up for all that were missed. Whether a rare task is due depends on when it
was last done, which the database knows.
"""

import logging
import signal
from time import sleep
from typing import Any

from lab.one_line import error_line
from workers.app import over_the_broker
from workers.repeating import Timetable
from workers.upkeep import FLEET, UPKEEP
from workers.wakeups import depth

log = logging.getLogger(__name__)

# Limit of messages in the queue of upkeep: when it is reached, the worker is down, and needs no more of them.
MOST_WAITING = 50
QUEUE = "upkeep"
POLL_S = 0.2


def beat() -> None:
    """Send upkeep until SIGTERM or Ctrl-C. Raises MachineUnfit."""
    over_the_broker()
    stopped: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _frame: stopped.append(number))
    timetable = Timetable(*UPKEEP, *FLEET)
    while not stopped:
        timetable.do_due(send)
        sleep(POLL_S)


def send(task: Any) -> None:
    """Send one task; a broker that does not answer costs this turn alone."""
    try:
        if depth(QUEUE) < MOST_WAITING:
            task.apply_async(queue=QUEUE)
    except Exception as exc:
        log.warning("%s could not be sent: %s", task.name, error_line(exc))
