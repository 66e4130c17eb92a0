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

# What a chore tells, as JSON.
Found = Mapping[str, Any] | None
_LOCKS: dict[str, Lock] = defaultdict(Lock)


class Patient(Task):  # type: ignore[type-arg]  # the library's stubs and the class differ
    """A task that comes again anyway: while the database or the broker is down it is one line in the log."""

    abstract = True

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Do it, as far as it goes."""
        try:
            return super().__call__(*arguments, **named)
        except (OperationalError, InterfaceError, RedisError, BrokerAway) as exc:
            log.warning("%s waits for its next turn: %s", self.name, error_line(exc))
            return None


class OneAtATime(Patient):
    """A task that one thread of a process does at a time; further calls return at once."""

    abstract = True

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Do it, unless another worker is doing it."""
        lock = _LOCKS[str(self.name)]
        if not lock.acquire(blocking=False):
            return None
        try:
            return super().__call__(*arguments, **named)
        finally:
            lock.release()


def seldom(every_s: float) -> Callable[[Callable[[], Found]], Callable[[], None]]:
    """Of what is sent often: do it where it was last done so many seconds ago, by the database. What fails was not done."""

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
