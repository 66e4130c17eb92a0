# SPDX-License-Identifier: GPL-2.0-or-later
"""The revisions that a standing experiment does not try again."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('lab', '0050_waiting_boots_in_index'),
    ]

    operations = [
        migrations.AddField(
            model_name='standing',
            name='refused',
            field=models.JSONField(db_default=models.Value([], output_field=models.JSONField()), default=list),
        ),
    ]
