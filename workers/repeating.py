# SPDX-License-Identifier: GPL-2.0-or-later
"""Work that is done again and again: in a thread of its own for as long as a block runs, or by a timetable."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic
from typing import Generic, TypeVar

from django.db import close_old_connections, connections

from lab.one_line import error_line

log = logging.getLogger(__name__)

# A stop waits this long for the last turn.
LAST_S = 15.0

Chore = TypeVar("Chore")


class Timetable(Generic[Chore]):
    """Chores with the seconds between two turns of each, by a clock that only goes forward; at first all are due."""

    def __init__(self, *chores: tuple[Chore, float]) -> None:
        self._chores = chores
        self._due = [0.0] * len(chores)

    def do_due(self, do: Callable[[Chore], object]) -> None:
        """Call `do` with each chore that is due. Raises what that raises; a chore that failed waits for its next turn."""
        for place, (chore, every_s) in enumerate(self._chores):
            if monotonic() >= self._due[place]:
                self._due[place] = monotonic() + every_s
                do(chore)


@contextmanager
def repeating(
    what: str,
    do: Callable[[], object],
    *,
    every_s: float,
    fault_s: float = 0.0,
    end: Callable[[], None] = lambda: None,
) -> Iterator[None]:
    """Call `do` every every_s seconds, and `end` after the last call, in a thread; a fault costs a turn and fault_s seconds."""
    stopped = Event()

    def go_on() -> None:
        logged = ""
        try:
            while not stopped.wait(every_s):
                try:
                    close_old_connections()
                    do()
                    logged = ""
                except Exception as exc:
                    # As while the database restarts: the same fault is logged once.
                    line = error_line(exc)
                    if line != logged:
                        log.warning("%s waits and will be retried: %s", what, line, exc_info=True)
                    logged = line
                    connections.close_all()
                    stopped.wait(fault_s)
        finally:
            end()
            connections.close_all()

    thread = Thread(target=go_on, name=what, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join(LAST_S)
