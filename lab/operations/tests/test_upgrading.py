# SPDX-License-Identifier: GPL-2.0-or-later
"""Migrations that older code lives through: expand, deploy, contract (docs/operations/upgrading.md).

While a fleet is brought up to date, old processes go on over new tables. A migration that they would not live through says so by
`stops_the_lab = "why"`, and the upgrade notes tell operators to stop the lab for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.migration import Migration
from django.db.migrations.operations.base import Operation

ROOT = Path(__file__).resolve().parents[3]
NOTES = ROOT / "docs/operations/upgrading.md"
# The first that follows the migration of all tables.
SINCE = "0029"
MARK = "stops_the_lab"
# A migration that looks worse than it is says so by `lived_through = "why"`.
LIVED = "lived_through"

# Old code neither misses what they make nor writes past it.
HARMLESS = (
    migrations.CreateModel,
    migrations.AddIndex,
    migrations.RemoveIndex,
    migrations.RenameIndex,
    migrations.RemoveConstraint,
    migrations.AlterModelOptions,
    migrations.AlterModelManagers,
    migrations.SeparateDatabaseAndState,
)


def ours() -> dict[str, Migration]:
    loader = MigrationLoader(None)
    return {
        name: migration
        for (app, name), migration in loader.disk_migrations.items()
        if app == "lab" and name >= SINCE
    }


def complaints(migration: Migration) -> Iterator[str]:
    """Yield the operations that older code would not survive, a line each."""
    made = {
        operation.name.lower()
        for operation in migration.operations
        if isinstance(operation, migrations.CreateModel)
    }
    for operation in migration.operations:
        why = trouble(operation, made)
        if why:
            yield f"{operation.describe()}: {why}"


def trouble(operation: Operation, made: set[str]) -> str:
    """Return why old code would not survive an operation; made: tables that this very migration makes."""
    table = str(getattr(operation, "model_name", "") or getattr(operation, "name", "")).lower()
    if isinstance(operation, HARMLESS) or (
        table in made and not isinstance(operation, migrations.DeleteModel)
    ):
        return ""
    if isinstance(operation, migrations.AddField):
        return _of_new_column(operation.field)
    if isinstance(operation, migrations.AlterField):
        return (
            ""
            if operation.field.null
            else "it may rewrite or lock the table: add a column, copy, drop the old one"
        )
    if isinstance(operation, migrations.AddConstraint):
        return "old code does not know it and may write what it refuses"
    if isinstance(operation, migrations.RunPython):
        batched = getattr(operation.code, "in_batches", False)
        return (
            "" if batched else "rows are changed in one transaction: do it in batches, and mark the function"
        )
    if isinstance(operation, migrations.RunSQL):
        return "nobody can tell what it does to old code"
    return "old code still names it: drop it in the release after the one that stops using it"


def _of_new_column(field: models.Field[object, object]) -> str:
    """Old code writes rows without the column: the database must know what to put there."""
    if field.null or field.has_db_default() or isinstance(field, models.ManyToManyField):  # type: ignore[attr-defined]
        return ""
    return "old code inserts rows without it: give it null=True or db_default"


def test_every_migration_since_the_fleet_can_be_lived_through_or_says_that_it_cannot() -> None:
    problems = {
        name: list(complaints(migration))
        for name, migration in ours().items()
        if not getattr(migration, MARK, "") and not getattr(migration, LIVED, "")
    }
    assert {name: lines for name, lines in problems.items() if lines} == {}


def test_what_stops_the_lab_is_in_the_upgrade_notes() -> None:
    notes = NOTES.read_text()
    marked = [name for name, migration in ours().items() if getattr(migration, MARK, "")]
    assert [name for name in marked if f"`{name}`" not in notes] == []
    for name in marked:
        assert list(complaints(ours()[name])), f"{name} says that it stops the lab, which it need not"


@pytest.mark.parametrize(
    ("operation", "said"),
    [
        (migrations.RemoveField("run", "line"), "old code still names it"),
        (migrations.DeleteModel("Run"), "old code still names it"),
        (migrations.RenameField("run", "line", "row"), "old code still names it"),
        (migrations.RenameModel("Run", "Boot"), "old code still names it"),
        (migrations.AddField("run", "x", models.IntegerField(default=0)), "null=True or db_default"),
        (migrations.AlterField("run", "line", models.CharField(max_length=10)), "may rewrite or lock"),
        (
            migrations.AddConstraint("run", models.UniqueConstraint(fields=["line"], name="x")),
            "may write what it refuses",
        ),
        (migrations.RunPython(migrations.RunPython.noop), "do it in batches"),
        (migrations.RunSQL("SELECT 1"), "nobody can tell"),
    ],
)
def test_the_rule_sees_what_breaks_old_code(operation: Operation, said: str) -> None:
    migration = type("Of", (Migration,), {"operations": [operation]})("0099_x", "lab")
    assert said in " ".join(complaints(migration))


@pytest.mark.parametrize(
    "operation",
    [
        migrations.AddField("run", "x", models.IntegerField(null=True)),
        migrations.AddField("run", "x", models.IntegerField(db_default=0)),
        migrations.AlterField("run", "line", models.TextField(null=True)),
        migrations.CreateModel("X", [("id", models.BigAutoField(primary_key=True))]),
        migrations.AddIndex("run", models.Index(fields=["line"], name="x")),
    ],
)
def test_the_rule_lets_through_what_only_adds(operation: Operation) -> None:
    migration = type("Of", (Migration,), {"operations": [operation]})("0099_x", "lab")
    assert list(complaints(migration)) == []
