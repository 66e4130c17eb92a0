# SPDX-License-Identifier: GPL-2.0-or-later
"""The index of waiting boots has what pages count of them. While it is made again, nothing is written to boots."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('lab', '0049_steps_since'),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name='run',
            name='waiting_run_in_order',
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(condition=models.Q(('state', 'queued')), fields=['experiment', 'position', 'variant', 'target', 'created_at'], name='waiting_run_in_order'),
        ),
    ]
