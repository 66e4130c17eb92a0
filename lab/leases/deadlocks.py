# SPDX-License-Identifier: GPL-2.0-or-later
"""Repeat a change that the database ended because of a deadlock with another."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from django.db import OperationalError, connection, transaction

Given = ParamSpec("Given")
Result = TypeVar("Result")
# PostgreSQL's error code; it ends one of the two after deadlock_timeout, a second if nobody set it (PostgreSQL 15, 20.12 and appendix A).
_DEADLOCK = "40P01"
_ATTEMPTS = 3


def is_deadlock(exc: OperationalError) -> bool:
    """Return whether the database ended a statement because of a deadlock."""
    return getattr(exc.__cause__, "sqlstate", "") == _DEADLOCK


def without_deadlock(change: Callable[Given, Result]) -> Callable[Given, Result]:
    """Make a function's change in one transaction, at most three times where it ends in a deadlock.

    Within a transaction of the caller's nothing is repeated: that whole transaction has failed.
    Raises OperationalError as the database gives it.
    """

    @wraps(change)
    def repeated(*args: Given.args, **named: Given.kwargs) -> Result:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                with transaction.atomic():
                    return change(*args, **named)
            except OperationalError as exc:
                if not is_deadlock(exc) or attempt == _ATTEMPTS or connection.in_atomic_block:
                    raise
        raise AssertionError("the last attempt returns or raises")

    return repeated
