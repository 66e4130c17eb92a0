# SPDX-License-Identifier: GPL-2.0-or-later
"""Detect a worker that no longer receives messages: Celery's loop can lose its connection to Redis without noticing, and waits for ever.

Seen with kombu 5.7: Redis goes down between a message's arrival and its acknowledgement; the failed acknowledgement closes
the socket, the loop forgets it, and nothing reconnects. Such a process looks healthy from outside although work waits. So
it checks itself for wake-ups that it should have taken, and exits if there are any, to be restarted.
"""

import logging
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Lock, Timer
from time import monotonic
from typing import Any

from celery import signals
from kombu.exceptions import OperationalError as BrokerAway
from redis.exceptions import RedisError

log = logging.getLogger(__name__)

# A free worker takes a wake-up within milliseconds.
DEAF_S = 15.0
# A loop that is stuck may not see a signal either.
LAST_S = 30.0


@dataclass
class Hearing:
    """hands: how many tasks the process does at a time. depth: how many messages lie in a queue."""

    queues: Sequence[str]
    hands: int
    depth: Callable[[str], int]
    now: Callable[[], float] = monotonic
    _attached: bool = False
    _busy: int = 0
    _since: float | None = None
    _lock: Lock = field(default_factory=Lock)

    def attach(self) -> None:
        """Start to watch, and count the tasks that Celery begins and ends: before this, no message is taken."""
        self._attached = True
        signals.task_prerun.connect(self.begun, weak=False)
        signals.task_postrun.connect(self.ended, weak=False)

    def begun(self, **_given: Any) -> None:
        """Note that a message arrived and its work begins."""
        with self._lock:
            self._busy += 1
            self._since = None

    def ended(self, **_given: Any) -> None:
        """Note that a task has ended."""
        with self._lock:
            self._busy -= 1
            self._since = None

    def is_deaf(self) -> bool:
        """Return whether a message has waited for DEAF_S although the process could take it; called every few seconds."""
        try:
            waits = any(self.depth(queue) for queue in self.queues)
        except (RedisError, BrokerAway, OSError):
            waits = False
        with self._lock:
            if not (waits and self._attached) or self._busy >= self.hands:
                self._since = None
            elif self._since is None:
                self._since = self.now()
            return self._since is not None and self.now() - self._since > DEAF_S


def end_deaf(hearing: Hearing) -> None:
    """End this process by SIGTERM if it is deaf, and by force if that does nothing for half a minute."""
    if hearing.is_deaf():
        log.error(
            "this worker receives nothing from Redis any more although work is waiting: it exits, to be restarted"
        )
        last = Timer(LAST_S, os._exit, [1])
        last.daemon = True
        last.start()
        os.kill(os.getpid(), signal.SIGTERM)
