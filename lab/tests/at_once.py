# SPDX-License-Identifier: GPL-2.0-or-later
"""Work in threads, each with a connection of its own, as processes of a lab have it."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import connection

Result = TypeVar("Result")


def at_once(*work: Callable[[], Result]) -> list[Result]:
    """Do it at once, each in a thread; return the results in order."""
    with ThreadPoolExecutor(len(work)) as pool:
        return [begun.result(timeout=60) for begun in [pool.submit(_closed, each) for each in work]]


def _closed(work: Callable[[], Result]) -> Result:
    try:
        return work()
    finally:
        connection.close()


def until_one_waits(seconds: float = 5.0) -> None:
    """Return once another connection waits for a lock; SQLite does not say, and lets one write after the other anyway."""
    until = time.monotonic() + seconds
    while connection.vendor == "postgresql" and time.monotonic() < until:
        with connection.cursor() as cursor:
            # Not pg_stat_activity, of which a transaction sees what it saw first.
            cursor.execute("SELECT 1 FROM pg_locks WHERE NOT granted")
            if cursor.fetchone():
                return
        time.sleep(0.01)
