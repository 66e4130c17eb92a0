# SPDX-License-Identifier: GPL-2.0-or-later
"""The tables of a backup: those of migrations, not what the database keeps for itself."""

from collections.abc import Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from lab.errors import BackupRefused
from lab.models import Tree
from lab.operations.backup import tables
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
    with snapshot() as (found, _):
        assert "lab_run" in found
        assert [name for name in found if name.startswith("sqlite_")] == []


def test_a_postgresql_is_asked_once_for_the_columns_of_its_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """For each table it would be asked for those of all."""
    server, asked = MagicMock(vendor="postgresql"), list[str]()

    def columns() -> dict[str, list[str]]:
        asked.append("columns")
        return {"lab_run": ["id"], "lab_tree": ["id", "name"]}

    monkeypatch.setattr(tables, "connection", server)
    monkeypatch.setattr(tables, "transaction", SimpleNamespace(atomic=nullcontext))
    monkeypatch.setattr(tables, "_columns", columns)
    server.ops.quote_name.side_effect = str
    cursor = server.cursor.return_value.__enter__.return_value
    cursor.copy.return_value.__enter__.return_value = [b"1\n"]
    with snapshot() as (found, read):
        assert [list(read(name)) for name in found] == [[b"1\n"], [b"1\n"]]
    assert asked == ["columns"]
    assert cursor.copy.call_args.args == ("COPY lab_tree (id, name) TO STDOUT",)


@pytest.mark.django_db
def test_a_backup_that_has_it_is_restored_without() -> None:
    load({"sqlite_stat1": STATISTICS}, rows)
    assert not Tree.objects.exists()


@pytest.mark.django_db
def test_any_other_table_that_no_migration_makes_is_refused() -> None:
    with pytest.raises(BackupRefused, match="its table stat1 is not the one that its own migrations make"):
        load({"stat1": STATISTICS}, rows)
