# SPDX-License-Identifier: GPL-2.0-or-later
from django.db import migrations, models


def allow_gaps(apps, schema_editor):
    """Descriptions that were taken with gaps in their series say so from now on: they can be run again as they were."""
    from kernels.errors import KernelsError, SeriesIncomplete
    from kernels.patches.series import read_series

    def has_gaps(text):
        try:
            read_series(text.encode("utf-8", "replace"))
        except SeriesIncomplete:
            return True
        except KernelsError:
            return False
        return False

    for name in ("Experiment", "Standing"):
        for row in apps.get_model("lab", name).objects.only("pk", "spec").iterator(chunk_size=50):
            patches = row.spec.get("patches") or []
            gaps = [patch for patch in patches if "partial" not in patch and has_gaps(patch.get("text") or "")]
            for patch in gaps:
                patch["partial"] = True
            if gaps:
                row.save(update_fields=["spec"])


# A row at a time: each is saved by itself, and rows that were changed already say `partial`.
allow_gaps.in_batches = True


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ('lab', '0026_signing_key'),
    ]

    operations = [
        migrations.AddField(
            model_name='switch',
            name='notes',
            field=models.JSONField(default=list, db_default=models.Value([], output_field=models.JSONField())),
        ),
        migrations.RunPython(allow_gaps, migrations.RunPython.noop),
    ]
