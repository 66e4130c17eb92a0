# SPDX-License-Identifier: GPL-2.0-or-later
"""The pages: a Django app without models."""

from django.apps import AppConfig


class WebConfig(AppConfig):
    """Name of the app that holds the pages' templates and static files."""

    name = "web"
    label = "web"
    verbose_name = "kperflab pages"
