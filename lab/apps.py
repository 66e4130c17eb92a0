# SPDX-License-Identifier: GPL-2.0-or-later
"""The one Django app with models."""

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
        """Make `manage.py check`, and with --deploy, know ours."""
        for check in CHECKS:
            register(check, Tags.security, deploy=True)
        register(store_works, "store")
        connection_created.connect(close_tables)
