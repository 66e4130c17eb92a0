# SPDX-License-Identifier: GPL-2.0-or-later
"""Start each test run on SQLite from a copy of a migrated database instead of from all migrations.

The copy lies in the tests' state root under a digest of every migration's text, so a changed migration is run again.
Django still calls `migrate` on the copy: what the copy lacks would be applied.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
from contextlib import nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import Any

from kernels.files.scratch import locked

# Checkouts side by side may have different migrations.
MOST = 4


def use_template() -> None:
    """Make Django's test database of SQLite begin with the template, where there is one, and leave one behind."""
    from django.db.backends.sqlite3.creation import DatabaseCreation

    creation: Any = DatabaseCreation
    create, whole = creation._create_test_db, creation.create_test_db

    def create_from_template(self: Any, *args: Any, **named: Any) -> str:
        name: str = create(self, *args, **named)
        # Another run may just replace it.
        with suppress(FileNotFoundError):
            shutil.copyfile(_template(), name)
        return name

    def create_and_keep(self: Any, *args: Any, **named: Any) -> str:
        # Of processes that start side by side one applies the migrations, and the others wait for its copy.
        with nullcontext() if _template().exists() else locked(_template().parent / ".lock"):
            name: str = whole(self, *args, **named)
            if not _template().exists():
                _keep(self.connection, _template())
        return name

    creation._create_test_db = create_from_template
    creation.create_test_db = create_and_keep


def begin_with_template(home: Path) -> None:
    """Put a migrated database into a new lab's home. Without a template, the first caller applies the migrations."""
    home.mkdir(parents=True, exist_ok=True)
    with suppress(FileNotFoundError):
        shutil.copyfile(_template(), home / "kperflab.sqlite3")


def _keep(connection: Any, template: Path) -> None:
    template.parent.mkdir(parents=True, exist_ok=True)
    for older in sorted(template.parent.glob("*.sqlite3"), key=os.path.getmtime)[: 1 - MOST]:
        older.unlink(missing_ok=True)
    partial = template.with_suffix(f".{os.getpid()}")
    with sqlite3.connect(partial) as copy:
        connection.connection.backup(copy)
    copy.close()
    partial.replace(template)


@cache
def _template() -> Path:
    from django.apps import apps
    from django.conf import settings

    digest = hashlib.sha256()
    for app in apps.get_app_configs():
        for path in sorted(Path(app.path, "migrations").glob("*.py")):
            digest.update(f"{path.name}\0{path.read_text()}\0".encode())
    return Path(settings.HOME) / "test-databases" / f"{digest.hexdigest()[:32]}.sqlite3"
