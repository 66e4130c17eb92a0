# SPDX-License-Identifier: GPL-2.0-or-later
"""The clock of leases: the database's, since the hosts of a fleet differ."""

from datetime import datetime, timedelta

from django.db import connection
from django.db.models.expressions import CombinedExpression
from django.db.models.functions import Now
from django.utils import timezone


def after(seconds: float) -> datetime | CombinedExpression:
    """A moment so many seconds from now, to write or to compare with; SQLite is always on this very host."""
    if connection.vendor == "postgresql":
        return Now() + timedelta(seconds=seconds)
    return timezone.now() + timedelta(seconds=seconds)
