# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks of `manage.py check` on the lab's own settings."""

from typing import Any

from django.core.checks import Error

from lab.errors import LabError
from lab.storage.store import lab_store


def store_works(app_configs: Any, **kwargs: Any) -> list[Error]:
    """Return whether the store, where there is one, takes a file and gives it back."""
    try:
        store = lab_store()
        if store is not None:
            store.check()
    except LabError as exc:
        return [Error(str(exc), id="lab.E001")]
    return []
