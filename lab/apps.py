# SPDX-License-Identifier: GPL-2.0-or-later
"""The one Django app with models."""

from typing import Any

from django.apps import AppConfig
from django.core.checks import Tags, register
from django.db.backends.signals import connection_created

from lab.operations.deploy_checks import CHECKS, store_works
from lab.service_urls import close_tables


class LabConfig(AppConfig):
    """Name and key type of the lab's tables."""

    name = "lab"
    label = "lab"
    verbose_name = "kperflab"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register our checks with `manage.py check`, some only with --deploy."""
        for check in CHECKS:
            register(check, Tags.security, deploy=True)
        register(store_works, "store")
        connection_created.connect(close_tables)
        connection_created.connect(_read_moments)


def _read_moments(connection: Any, **_about: Any) -> None:
    """Let a connection to PostgreSQL read moments quickly: pages read thousands."""
    if connection.vendor == "postgresql":
        # A process that uses SQLite alone need not import psycopg.
        from lab.postgres_moments import MomentLoader

        connection.connection.adapters.register_loader("timestamptz", MomentLoader)
