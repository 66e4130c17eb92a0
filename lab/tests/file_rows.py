# SPDX-License-Identifier: GPL-2.0-or-later
"""Rows of the tables that a file's tests share: made once, and gone after the last of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction
from pytest_django import DjangoDbBlocker


@contextmanager
def rows_of_a_file(blocker: DjangoDbBlocker) -> Iterator[None]:
    """Undo in the end what is written within. Each test's own transaction is undone inside, so all see the same rows.

    For fixtures of the scope "module" that also ask for `django_db_setup`. A file with a test of transactions cannot use it.
    """
    with blocker.unblock(), transaction.atomic():
        yield
        transaction.set_rollback(True)
