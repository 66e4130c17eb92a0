# SPDX-License-Identifier: GPL-2.0-or-later
"""Paths of one host become names below its state root, which any host can look up in its own or in the store."""

from pathlib import Path

from django.conf import settings
from django.db import migrations

# Where nobody knows the state root any more, its folders tell.
FOLDERS = ("/runs/", "/objects/logs/", "/artifacts/")


def to_name(path: str, home: Path) -> str:
    if not path.startswith("/"):
        return path
    if path.startswith(f"{home}/"):
        return path.removeprefix(f"{home}/")
    for folder in FOLDERS:
        if folder in path:
            return folder.removeprefix("/") + path.rpartition(folder)[2]
    return path


def rename(apps, schema_editor):
    home = Path(settings.HOME)
    for model, columns in (("Run", ("console", "directory")), ("Build", ("log",))):
        rows = apps.get_model("lab", model).objects
        for row in rows.only("pk", *columns).iterator(chunk_size=2000):
            changed = {name: to_name(getattr(row, name), home) for name in columns}
            if any(getattr(row, name) != value for name, value in changed.items()):
                rows.filter(pk=row.pk).update(**changed)


class Migration(migrations.Migration):
    stops_the_lab = "it makes a fleet of a lab on one machine"

    dependencies = [
        ("lab", "0015_deployment"),
    ]

    operations = [
        migrations.RunPython(rename, migrations.RunPython.noop),
    ]
