# SPDX-License-Identifier: GPL-2.0-or-later
"""The migrations of this code, those that one of them replaces, and the databases that are too old for it."""

from collections.abc import Collection
from functools import cache

from django.db.migrations.loader import MigrationLoader

Key = tuple[str, str]
# The last commit that has the replaced migrations.
LAST_WITH_REPLACED = "b6b374f"


@cache
def known_migrations() -> frozenset[Key]:
    """Return the migrations that this code brings."""
    return frozenset(MigrationLoader(None).disk_migrations)


@cache
def replaced_migrations() -> dict[Key, Key]:
    """Return the migration that replaces each one whose file is gone."""
    files = MigrationLoader(None).disk_migrations
    return {old: new for new, migration in files.items() for old in migration.replaces if old not in files}


def too_old(applied: Collection[Key]) -> str:
    """Return why this code cannot migrate a database with these migrations applied; empty where it can."""
    replaced = replaced_migrations()
    missing = sorted(replaced.keys() - set(applied))
    if not missing or len(missing) == len(replaced):
        return ""
    names = ".".join(missing[0])
    return f"without {names}: run manage.py migrate with the code of commit {LAST_WITH_REPLACED} first"
