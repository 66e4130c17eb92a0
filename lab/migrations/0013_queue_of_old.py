# SPDX-License-Identifier: GPL-2.0-or-later
# By itself: PostgreSQL changes no table of which rows were changed in the same transaction.

from django.db import migrations, models


def say_where(apps, schema_editor):
    """Boots that were claimed before runs had a target of their own were on their experiment's."""
    Run = apps.get_model("lab", "Run")
    Experiment = apps.get_model("lab", "Experiment")
    there = Experiment.objects.filter(pk=models.OuterRef("experiment")).values("target")[:1]
    claimed = Run.objects.filter(target=None, started_at__isnull=False).exclude(state="running")
    claimed.update(target=models.Subquery(there))


def say_queue(apps, schema_editor):
    """Each build waits in the queue of its compiler."""
    Build = apps.get_model("lab", "Build")
    for pk, cc in Build.objects.exclude(request__cc="gcc").values_list("pk", "request__cc"):
        Build.objects.filter(pk=pk).update(queue=f"build.x86_64.{cc or 'gcc'}"[:100])


class Migration(migrations.Migration):
    stops_the_lab = "it makes a fleet of a lab on one machine"

    dependencies = [
        ('lab', '0012_queue'),
    ]

    operations = [
        migrations.RunPython(say_where, migrations.RunPython.noop),
        migrations.RunPython(say_queue, migrations.RunPython.noop),
    ]
