# SPDX-License-Identifier: GPL-2.0-or-later
"""Wake a fleet's workers over Redis: a message names a queue of builds or a target, not a build or boot.

Its receiver enters the loop (loop.py) and takes what is best then, so it does not matter whether a message is lost, late or
doubled. Messages carry no expiry, since that would compare the clocks of two hosts; instead no queue is filled beyond what its free
workers can use.
"""

from collections import Counter
from typing import Any

from lab.runs.queues import queues_to_wake
from workers.app import app
from workers.loop import Scope, take_all
from workers.task_rules import OneAtATime, Patient


@app.task(base=Patient)
def build_next(queue: str) -> None:
    """Build the kernels of a queue one after the other until it is empty."""
    take_all(Scope(queue=queue, boots=False))


@app.task(base=Patient)
def boot_next(target: str) -> None:
    """Carry out the waiting boots of a target one after the other, then a health check if one is due."""
    take_all(Scope(target=target, builds=False))


@app.task(base=OneAtATime)
def dispatch() -> None:
    """Wake the workers that can take waiting work."""
    for name, times in Counter(queues_to_wake()).items():
        wake(name, times)


def wake(queue: str, times: int = 1) -> None:
    """Fill a queue up to this many wake-ups."""
    kind, _, rest = queue.partition(".")
    for _ in range(times - depth(queue)):
        if kind == "target":
            boot_next.apply_async((rest,), queue=queue)
        else:
            build_next.apply_async((queue,), queue=queue)


def depth(queue: str) -> int:
    """Return the number of messages in a queue."""
    with app.connection_or_acquire() as connection:
        # The broker is Redis, where a queue is a list of its name.
        channel: Any = connection.default_channel
        return int(channel.client.llen(queue))
