# SPDX-License-Identifier: GPL-2.0-or-later
"""A fleet's clock: sends what upkeep.py lists to the workers of upkeep, by a clock that never steps, and keeps no file.

Everything is sent at the start: whatever was missed meanwhile is made up for by one turn. What is due seldom is so by when it
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

# So many messages may lie in the queue of upkeep: its worker is down, and will not need older ones.
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
