# SPDX-License-Identifier: GPL-2.0-or-later
"""Rules of periodic tasks: never beside themselves, patient with services that are down, or done seldom."""

import logging
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import wraps
from threading import Lock
from typing import Any

from celery import Task
from django.db import InterfaceError, OperationalError
from kombu.exceptions import OperationalError as BrokerAway
from redis.exceptions import RedisError

from lab.errors import LabError
from lab.leases.upkeep import begin_chore, end_chore
from lab.one_line import error_line

log = logging.getLogger(__name__)

# A chore's report, as JSON.
Found = Mapping[str, Any] | None
_LOCKS: dict[str, Lock] = defaultdict(Lock)


class Patient(Task):  # type: ignore[type-arg]  # the library's stubs and the class differ
    """A task that is repeated anyway: while the database or the broker is down it only logs one line."""

    abstract = True

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Do it; log errors of a service that is down."""
        try:
            return super().__call__(*arguments, **named)
        except (OperationalError, InterfaceError, RedisError, BrokerAway) as exc:
            log.warning("%s waits for its next turn: %s", self.name, error_line(exc))
            return None


class OneAtATime(Patient):
    """A task that one thread of a process does at a time; further calls return at once."""

    abstract = True

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Do it, unless another thread is doing it."""
        lock = _LOCKS[str(self.name)]
        if not lock.acquire(blocking=False):
            return None
        try:
            return super().__call__(*arguments, **named)
        finally:
            lock.release()


def seldom(every_s: float) -> Callable[[Callable[[], Found]], Callable[[], None]]:
    """Do a task that is sent often only every_s seconds after it was last done, by the database. A failed task was not done."""

    def of(do: Callable[[], Found]) -> Callable[[], None]:
        @wraps(do)
        def if_due() -> None:
            if not begin_chore(do.__name__, every_s):
                return
            try:
                report = do()
            except LabError as exc:
                log.warning("%s waits: %s", do.__name__, exc)
            else:
                end_chore(do.__name__, report or {})

        return if_due

    return of
