# SPDX-License-Identifier: GPL-2.0-or-later
"""The tables of a backup: those of migrations, not what the database keeps for itself."""

from collections.abc import Iterator

import pytest

from lab.errors import BackupRefused
from lab.models import Tree
from lab.operations.backup.archive import TableDump
from lab.operations.backup.tables import analyze, load, snapshot

STATISTICS = TableDump(columns=["tbl", "idx", "stat"], rows=1)


def rows(name: str) -> Iterator[bytes]:
    """Yield a row of a backup's table."""
    yield b'["lab_run", null, "5"]\n'


@pytest.mark.django_db(transaction=True)
def test_what_analyze_wrote_goes_into_no_backup() -> None:
    """A restore runs it, so the next backup of a restored SQLite lab could not be restored."""
    analyze()
    with snapshot() as (tables, _):
        assert "lab_run" in tables
        assert [name for name in tables if name.startswith("sqlite_")] == []


@pytest.mark.django_db
def test_a_backup_that_has_it_is_restored_without() -> None:
    load({"sqlite_stat1": STATISTICS}, rows)
    assert not Tree.objects.exists()


@pytest.mark.django_db
def test_any_other_table_that_no_migration_makes_is_refused() -> None:
    with pytest.raises(BackupRefused, match="its table stat1 is not the one that its own migrations make"):
        load({"stat1": STATISTICS}, rows)
