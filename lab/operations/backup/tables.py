# SPDX-License-Identifier: GPL-2.0-or-later
"""Copy all rows of all tables out of a database as of one moment, and into another.

PostgreSQL: what COPY writes and reads as text. SQLite: a JSON array a row. Neither holds statements. The tables themselves are always
made by our own migrations.
"""

import base64
import json
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from django.db import connection, transaction

from lab.errors import BackupRefused
from lab.operations.backup.archive import TableDump

# Made again by the migrations themselves.
MADE_BY_MIGRATIONS = "django_migrations"
# The longest row: a profile's tree in base64.
LONGEST_ROW = 1 << 30

Pieces = Callable[[str], Iterable[bytes]]
Rows = Callable[[str, TableDump], Iterator[bytes]]


@contextmanager
def snapshot() -> Iterator[tuple[dict[str, list[str]], Callable[[str], Iterator[bytes]]]]:
    """Yield the tables with their columns, and a function that reads a table's rows; all of one moment, while others write."""
    if connection.vendor == "sqlite":
        with tempfile.NamedTemporaryFile(suffix=".sqlite3", dir=_folder_of_database()) as copy:
            yield _sqlite_snapshot(Path(copy.name))
        return
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        columns = _columns()
        yield columns, lambda table: _copied(table, columns[table])


def _folder_of_database() -> Path:
    return Path(connection.settings_dict["NAME"]).parent


def _sqlite_snapshot(copy: Path) -> tuple[dict[str, list[str]], Callable[[str], Iterator[bytes]]]:
    connection.ensure_connection()
    with closing(sqlite3.connect(copy)) as kept:
        connection.connection.backup(kept)
    columns = _columns()

    def rows(table: str) -> Iterator[bytes]:
        with closing(sqlite3.connect(copy)) as kept:
            for row in kept.execute(f"SELECT {_listed(columns[table])} FROM {_quoted(table)}"):  # noqa: S608  our names
                yield (json.dumps([_packed(value) for value in row], ensure_ascii=False) + "\n").encode()

    return columns, rows


def _columns() -> dict[str, list[str]]:
    """Every table that a migration made, with its columns; not those that SQLite keeps for itself, as ANALYZE does."""
    with connection.cursor() as cursor:
        names = sorted(
            table.name
            for table in connection.introspection.get_table_list(cursor)
            if table.type in ("t", "p") and not _is_sqlites(table.name)
        )
        return {
            name: [column.name for column in connection.introspection.get_table_description(cursor, name)]
            for name in names
            if name != MADE_BY_MIGRATIONS
        }


def _copied(table: str, columns: list[str]) -> Iterator[bytes]:
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY {_quoted(table)} ({_listed(columns)}) TO STDOUT") as copy,
    ):
        for piece in copy:
            yield bytes(piece)


def load(tables: dict[str, TableDump], pieces: Pieces) -> None:
    """Put rows into the tables of this database, in place of what is there. Raises BackupRefused."""
    there = _columns()
    # Backups of SQLite from before 2026-11-26 have what ANALYZE wrote there.
    tables = {name: table for name, table in tables.items() if not _is_sqlites(name)}
    for name, table in tables.items():
        if sorted(table.columns) != sorted(there.get(name, [])):
            raise BackupRefused(f"its table {name[:100]} is not the one that its own migrations make")
    with transaction.atomic():
        _empty(list(there))
        for name, table in tables.items():
            fill = _fill_sqlite if connection.vendor == "sqlite" else _fill_postgres
            fill(name, table, pieces(name))
        connection.check_constraints()


def _empty(names: list[str]) -> None:
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(f"TRUNCATE {_listed(names)} CASCADE")
            return
        for name in names:
            cursor.execute(f"DELETE FROM {_quoted(name)}")  # noqa: S608  our names


def _fill_postgres(name: str, table: TableDump, pieces: Iterable[bytes]) -> None:
    with connection.cursor() as cursor:
        with cursor.copy(f"COPY {_quoted(name)} ({_listed(table.columns)}) FROM STDIN") as copy:
            for piece in pieces:
                copy.write(piece)
        if cursor.rowcount != table.rows:
            raise BackupRefused(f"its table {name} has {cursor.rowcount} rows in place of {table.rows}")


def _fill_sqlite(name: str, table: TableDump, pieces: Iterable[bytes]) -> None:
    marks = ", ".join("%s" for _ in table.columns)
    statement = f"INSERT INTO {_quoted(name)} ({_listed(table.columns)}) VALUES ({marks})"  # noqa: S608  our names
    written = 0
    with connection.cursor() as cursor:
        for line in _lines(pieces):
            values = json.loads(line)
            if not isinstance(values, list) or len(values) != len(table.columns):
                raise BackupRefused(f"its table {name} has a row that is not valid")
            cursor.execute(statement, [_unpacked(value) for value in values])
            written += 1
    if written != table.rows:
        raise BackupRefused(f"its table {name} has {written} rows in place of {table.rows}")


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    rest = bytearray()
    for piece in pieces:
        *whole, last = piece.split(b"\n")
        for part in whole:
            yield bytes(rest + part)
            rest.clear()
        rest += last
        if len(rest) > LONGEST_ROW:
            raise BackupRefused("a row is longer than the lab writes")
    if rest:
        yield bytes(rest)


def _packed(value: Any) -> Any:
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def _unpacked(value: Any) -> Any:
    return base64.b64decode(value["base64"]) if isinstance(value, dict) else value


def number_on() -> None:
    """Number new rows after the existing ones, in all tables that exist, including those of older code."""
    if connection.vendor != "postgresql":
        return
    with connection.cursor() as cursor:
        for table in _columns():
            for sequence in connection.introspection.get_sequences(cursor, table):
                column = _quoted(sequence["column"])
                cursor.execute(
                    f"SELECT setval(%s, coalesce(max({column}), 1), max({column}) IS NOT NULL) FROM {_quoted(table)}",  # noqa: S608  our names
                    [sequence["name"]],
                )


def analyze() -> None:
    """Update the database's statistics: PostgreSQL takes every table for a small one until its own upkeep runs."""
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def _is_sqlites(table: str) -> bool:
    return table.startswith("sqlite_")


def _quoted(name: str) -> str:
    return connection.ops.quote_name(name)


def _listed(names: list[str]) -> str:
    return ", ".join(_quoted(name) for name in names)
