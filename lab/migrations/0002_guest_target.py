# SPDX-License-Identifier: GPL-2.0-or-later
"""The target every installation has: a guest of this machine."""

from django.db import migrations


def add_guest(apps, schema_editor):
    apps.get_model("lab", "Target").objects.get_or_create(
        name="guest", defaults={"driver": "libvirt", "vcpus": 2, "memory_mib": 1024}
    )


class Migration(migrations.Migration):
    dependencies = [("lab", "0001_initial")]
    operations = [migrations.RunPython(add_guest, migrations.RunPython.noop)]
