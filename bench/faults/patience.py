# SPDX-License-Identifier: GPL-2.0-or-later
"""Asking a database that may be away for a moment, because we took it away."""

import time
from collections.abc import Callable
from typing import TypeVar

from django.db import InterfaceError, OperationalError, connection

Found = TypeVar("Found")
_AGAIN_S = 0.2
AWAY_S = 120.0


def patiently(ask: Callable[[], Found]) -> Found:
    """Return the result of `ask`, retried for two minutes while the database does not answer."""
    end = time.monotonic() + AWAY_S
    while True:
        try:
            return ask()
        except (OperationalError, InterfaceError):
            if time.monotonic() > end:
                raise
            connection.close()
            time.sleep(_AGAIN_S)
