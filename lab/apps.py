# SPDX-License-Identifier: GPL-2.0-or-later
"""The one Django app with models."""

from django.apps import AppConfig


class LabConfig(AppConfig):
    """Name and key type of the lab's tables."""

    name = "lab"
    label = "lab"
    verbose_name = "kperflab"
    default_auto_field = "django.db.models.BigAutoField"
