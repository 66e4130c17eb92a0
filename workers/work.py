# SPDX-License-Identifier: GPL-2.0-or-later
"""One machine's worker: it polls the tables, enters the loop (loop.py) when there is work, and keeps the lab going.

Boots are timed, so nothing else is done beside them. Only hooks are called meanwhile: that takes no time of this machine, and
the receiver of a verdict should not wait for another experiment's kernel.
"""

import fcntl
import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import Event

from django.db import close_old_connections

from workers import tasks
from workers.errors import MachineUnfit
from workers.loop import Scope, take_one
from workers.repeating import Timetable, repeating
from workers.upkeep import UPKEEP

log = logging.getLogger(__name__)

EVERYTHING = Scope()
# Work that was queued is seen within this time.
IDLE_S = 0.5
# After a fault of the loop's own, such as a database that does not answer.
FAULT_S = 10.0
# How often the thread of deliveries looks.
DELIVER_S = 1.0


def work(stopped: Event) -> None:
    """Do whatever there is to do until `stopped`; a stop is noticed between two things, an interrupt at once.

    An interrupt (KeyboardInterrupt, SystemExit) returns the current work to the queue and is raised again.
    """
    timetable = Timetable(*UPKEEP)
    while not stopped.is_set():
        try:
            timetable.do_due(_do)
            busy = take_one(EVERYTHING)
        except Exception:
            log.exception("the worker could not go on; it tries again in %g s", FAULT_S)
            close_old_connections()
            stopped.wait(FAULT_S)
        else:
            if not busy:
                stopped.wait(IDLE_S)


def _do(chore: Callable[[], object]) -> None:
    """Do a chore. If it fails, the other chores, builds and boots go on, as in a fleet."""
    try:
        chore()
    except Exception:
        log.exception("a chore failed; it is retried at its next turn")
        close_old_connections()


def delivering() -> AbstractContextManager[None]:
    """Deliver due notifications to hooks, in a thread, while the block runs."""
    return repeating("telling hooks", tasks.deliver_events, every_s=DELIVER_S, fault_s=FAULT_S)


@contextmanager
def only_worker(home: Path) -> Iterator[None]:
    """Lock this machine for one worker. Raises MachineUnfit: two would distort each other's times."""
    with (home / "worker.lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise MachineUnfit(f"a worker already works on {home}: stop that one first") from None
        yield
