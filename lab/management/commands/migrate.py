# SPDX-License-Identifier: GPL-2.0-or-later
"""`manage.py migrate`: Django's own, after it has refused a database that is too old for this code."""

from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import connections
from django.db.migrations.recorder import MigrationRecorder

from lab.leases.version import too_old


class Command(migrate.Command):
    """Apply migrations."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Apply them. Raises CommandError for a database without some of the replaced migrations."""
        applied = MigrationRecorder(connections[options["database"]]).applied_migrations()
        if why := too_old(applied.keys()):
            raise CommandError(f"the database is of older code, {why}")
        super().handle(*args, **options)
