# SPDX-License-Identifier: GPL-2.0-or-later
"""An index of the queues of workers, which each look at an open experiment asks for. SQLite has none of its kind."""

from django.contrib.postgres.indexes import GinIndex
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

QUEUES = GinIndex(fields=["queues"], name="worker_queues")


def add_index(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    if editor.connection.vendor == "postgresql":
        editor.add_index(apps.get_model("lab", "Worker"), QUEUES)


def remove_index(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    if editor.connection.vendor == "postgresql":
        editor.remove_index(apps.get_model("lab", "Worker"), QUEUES)


class Migration(migrations.Migration):

    lived_through = "it adds an index, and the table has a row for each worker"

    dependencies = [
        ('lab', '0047_withdrawal'),
    ]

    operations = [
        migrations.RunPython(add_index, remove_index),
    ]
